// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mlbatch/mlbatch/tools/mlbatch/answers/explain"
	"github.com/mlbatch/mlbatch/tools/mlbatch/clusterstate"
	"github.com/mlbatch/mlbatch/tools/mlbatch/printing"
	"github.com/mlbatch/mlbatch/tools/mlbatch/submit"
	"github.com/mlbatch/mlbatch/tools/mlbatch/why"
	"github.com/mlbatch/mlbatch/tools/mlbatch/work"
)

const ofTheWork = "namespace of the work (default: the one in the context)"

func statusOfWorkCommand() *cobra.Command {
	var where runNamespace
	var o output
	cmd := &cobra.Command{
		Use:     "status NAME",
		Example: "  mlbatch status train\n  mlbatch status run/survey -o json",
		Short:   "Say how far an AppWrapper, a Run or a job is",
		Long: "Say how far an AppWrapper, a Run or a bare job is: its state, what it consists of, its pods and their nodes,\n" +
			"retries, and the last failure. If names are not unique, write KIND/NAME.",
		Args: oneWork,
		RunE: func(cmd *cobra.Command, names []string) error {
			c, target, err := where.find(cmd, names[0])
			if err != nil {
				return err
			}
			now := time.Now()
			report, err := work.Status(cmd.Context(), c, target, now)
			out := cmd.OutOrStdout()
			if absent(err) && target.Kind == "" {
				if members, listErr := work.Members(cmd.Context(), c, target.Namespace, target.Name); listErr == nil && len(members) > 0 {
					return printArray(cmd, c, target, o)
				}
			}
			if err != nil {
				return suggesting(err, target)
			}
			return o.print(out, "WorkStatus", printing.Items[work.Report]{Items: []work.Report{report}}, func() error { return report.WriteText(out, now) })
		},
	}
	where.bind(cmd.Flags(), ofTheWork)
	cmd.ValidArgsFunction = where.names
	o.bindTable(cmd.Flags())
	return cmd
}

func printArray(cmd *cobra.Command, c client.Client, target why.Target, o output) error {
	now, out := time.Now(), cmd.OutOrStdout()
	numbers, err := work.Array(cmd.Context(), c, target.Namespace, target.Name, now)
	if err != nil {
		return err
	}
	return o.print(out, "WorkList", numbers, func() error { return numbers.WriteTable(out, work.Columns{Wide: true}, now) })
}

// absent reports whether an error says that nothing has a name.
func absent(err error) bool {
	return errors.As(err, new(why.NotFoundError))
}

// aboutWork is a command about one piece of work.
func aboutWork(cmd *cobra.Command, where *runNamespace, do func(*cobra.Command, client.WithWatch, explain.Objects) error) *cobra.Command {
	cmd.Args = oneWork
	cmd.RunE = func(cmd *cobra.Command, names []string) error {
		c, target, err := where.find(cmd, names[0])
		if err != nil {
			return err
		}
		found, err := why.Find(cmd.Context(), c, target)
		if err != nil {
			return suggesting(err, target)
		}
		return do(cmd, c, found)
	}
	where.bind(cmd.Flags(), ofTheWork)
	cmd.ValidArgsFunction = where.names
	return cmd
}

func waitCommand() *cobra.Command {
	return aboutWork(&cobra.Command{
		Use:     "wait NAME",
		Example: "  mlbatch wait train && mlbatch retry train --set numGpusPerPod=8",
		Short:   "Wait until work ends; the exit status is 0 if it succeeds",
		Long: "Wait until an AppWrapper, a Run or a bare job ends, and print its progress to standard error. The exit status is\n" +
			"0 if it succeeds, and 1 if it fails, is deleted or cannot be followed.",
	}, &runNamespace{}, func(cmd *cobra.Command, c client.WithWatch, found explain.Objects) error {
		return work.Wait(cmd.Context(), c, found, cmd.ErrOrStderr())
	})
}

// several says which pieces of work a command is about.
type several struct {
	runNamespace
	selector, array string
	// stages are those of work that --selector chooses.
	stages []string
}

// command is one about several pieces of work. All are found before anything is done.
func (s *several) command(cmd *cobra.Command, do func(*cobra.Command, client.WithWatch, []explain.Objects) error) *cobra.Command {
	cmd.Args = s.chosen
	cmd.RunE = func(cmd *cobra.Command, names []string) error {
		c, namespace, err := s.connectReader(cmd)
		if err != nil {
			return err
		}
		if s.array != "" {
			names = append(names, s.array)
		}
		if s.selector != "" {
			if names, err = s.matching(cmd, c, namespace); err != nil {
				return err
			}
		}
		found, err := s.findAll(cmd.Context(), c, namespace, names)
		if err != nil {
			return err
		}
		return do(cmd, c, found)
	}
	s.bind(cmd.Flags(), ofTheWork)
	cmd.Flags().StringVarP(&s.selector, "selector", "l", "", "all work of yours with these labels, such as project=vision, that is "+strings.Join(s.stages, ", "))
	cmd.Flags().StringVar(&s.array, "array", "", "all numbers of an array that are "+strings.Join(s.stages, ", "))
	cmd.ValidArgsFunction = s.moreNames
	return cmd
}

// chosen is an error unless there are names or a selector.
func (s *several) chosen(cmd *cobra.Command, names []string) error {
	switch {
	case s.selector == "" && s.array == "" && (len(names) == 0 || slices.Contains(names, "")):
		return fmt.Errorf("name AppWrappers, Runs or jobs: %s NAME…", cmd.CommandPath())
	case s.selector != "" && (len(names) > 0 || s.array != ""):
		return errors.New("names and --selector exclude each other: remove one of them")
	}
	return nil
}

// matching are the names of the work that the selector chooses. It is an error if it chooses work of others, or work of
// which nobody knows whose it is: that has to be named. Bare jobs seldom say it, and are left out with a note.
func (s *several) matching(cmd *cobra.Command, c client.Client, namespace string) (names []string, err error) {
	f := work.Filter{Stages: s.stages}
	if f.Labels, err = selecting(s.selector); err != nil {
		return nil, err
	}
	user, err := clusterstate.User(cmd.Context(), c)
	if err != nil {
		return nil, err
	}
	all, err := work.List(cmd.Context(), c, namespace, time.Now())
	if err != nil {
		return nil, err
	}
	matching, _ := all.Only(f, time.Time{})
	matching, left := matching.Ascribed()
	if theirs := matching.NotOf(user); theirs != nil {
		return nil, fmt.Errorf("--selector %s also chooses %s %s, which %s: name what is yours", s.selector, theirs.Kind, theirs.Name, whose(theirs.User))
	}
	for _, i := range matching.Items {
		names = append(names, strings.ToLower(i.Kind)+"/"+i.Name)
	}
	switch {
	case len(names) > 0 && left > 0:
		fmt.Fprintf(cmd.ErrOrStderr(), "note: %s left out, as nothing says whose: name what is yours\n", bareJobs(left, " is", " are"))
	case left > 0:
		return nil, fmt.Errorf("--selector %s chooses %s only, and nothing says whose: name what is yours", s.selector, bareJobs(left, "", ""))
	case len(names) == 0:
		return nil, fmt.Errorf("no work in namespace %s has the labels %s and is %s: see 'mlbatch list --selector %s'", namespace, s.selector, strings.Join(s.stages, ", "), s.selector)
	}
	return names, nil
}

// bareJobs counts them, with a verb for one and one for several.
func bareJobs(count int, one, several string) string {
	if count == 1 {
		return "1 bare job" + one
	}
	return fmt.Sprintf("%d bare jobs%s", count, several)
}

func whose(user string) string {
	if user == "" {
		return "may be somebody else's"
	}
	return "is the work of " + user
}

// findAll reads what names are about, once each. The name of an array is about its numbers.
func (s *several) findAll(ctx context.Context, c client.Client, namespace string, names []string) (all []explain.Objects, err error) {
	seen := map[types.UID]bool{}
	for _, name := range names {
		target, err := why.Parse(namespace, name)
		if err != nil {
			return nil, err
		}
		some, err := s.findOne(ctx, c, target)
		if err != nil {
			return nil, suggesting(err, target)
		}
		for _, found := range some {
			if uid := identity(found); !seen[uid] {
				all = append(all, found)
				seen[uid] = uid != "" // an object without one is no other's
			}
		}
	}
	return all, nil
}

func (s *several) findOne(ctx context.Context, c client.Client, target why.Target) ([]explain.Objects, error) {
	found, err := why.Find(ctx, c, target)
	if !absent(err) || target.Kind != "" {
		return []explain.Objects{found}, err
	}
	numbers, listErr := work.Members(ctx, c, target.Namespace, target.Name)
	if listErr != nil || len(numbers) == 0 {
		return nil, err
	}
	some := work.In(numbers, s.stages)
	if len(some) == 0 {
		return nil, fmt.Errorf("none of the %d numbers of array %s is %s", len(numbers), target.Name, strings.Join(s.stages, ", "))
	}
	return some, nil
}

// identity tells whether two names are about the same object.
func identity(o explain.Objects) types.UID {
	switch {
	case o.Run != nil:
		return o.Run.UID
	case o.AppWrapper != nil:
		return o.AppWrapper.UID
	}
	return o.Job.GetUID()
}

// each does something with each piece of work, also after an error. Its error is one line.
func each(all []explain.Objects, do func(explain.Objects) error) error {
	var wrong []error
	for _, o := range all {
		if err := do(o); err != nil {
			wrong = append(wrong, err)
		}
	}
	if len(wrong) < 2 {
		return errors.Join(wrong...)
	}
	texts := make([]string, 0, len(wrong))
	for _, err := range wrong {
		texts = append(texts, err.Error())
	}
	return errors.New(strings.Join(texts, "; "))
}

func cancelWorkCommand() *cobra.Command {
	var sure bool
	s := several{stages: []string{work.Queued, work.Starting, work.Running, work.Retrying, work.Preempted}}
	cmd := s.command(&cobra.Command{
		Use:   "cancel NAME…",
		Short: "Delete AppWrappers or jobs, or end Runs, after asking",
		Long: "Delete AppWrappers or bare jobs with all that they have created. A Run is ended, and its record is kept. The\n" +
			"question is asked on standard error; --yes answers it.",
		Example: "  mlbatch cancel train\n  mlbatch cancel train-2 train-3 run/survey --yes\n  mlbatch cancel -l project=vision",
	}, func(cmd *cobra.Command, c client.WithWatch, found []explain.Objects) error {
		if !sure && !confirmed(cmd, work.Ending(found)) {
			return errors.New("nothing was cancelled: answer yes, or use --yes")
		}
		return each(found, func(o explain.Objects) error { return work.Cancel(cmd.Context(), c, o, cmd.OutOrStdout()) })
	})
	cmd.Flags().BoolVarP(&sure, "yes", "y", false, "do not ask")
	return cmd
}

func confirmed(cmd *cobra.Command, question string) bool {
	fmt.Fprint(cmd.ErrOrStderr(), question, " [y/N] ")
	answer, _ := bufio.NewReader(cmd.InOrStdin()).ReadString('\n')
	answer = strings.ToLower(strings.TrimSpace(answer))
	return answer == "y" || answer == "yes"
}

func retryWorkCommand(version string) *cobra.Command {
	var annotations, settings []string
	var change work.Change
	s := several{stages: []string{work.Failed}}
	cmd := s.command(&cobra.Command{
		Use:   "retry NAME…",
		Short: "Submit AppWrappers that have ended, or Runs, again as NAME-2",
		Long: "Submit AppWrappers that have ended, or Runs, again: as NAME-2, or with the next free number. Resources inside get\n" +
			"new names, too, so that nobody waits until the old ones are removed. --set changes settings of 'mlbatch submit'.",
		Example: "  mlbatch retry train\n  mlbatch retry train --set numGpusPerPod=2 --annotate retryLimit=0\n  mlbatch retry -l project=vision",
	}, func(cmd *cobra.Command, c client.WithWatch, found []explain.Objects) error {
		return each(found, func(o explain.Objects) error { return work.Retry(cmd.Context(), c, o, change, cmd.OutOrStdout()) })
	})
	cmd.PreRunE = func(cmd *cobra.Command, _ []string) (err error) {
		change, err = work.ParseChange(annotations)
		change.Settings, change.Version = settings, version
		change.Check = func(ctx context.Context, job submit.Job) error {
			c, _, err := s.connect(cmd) // this client asks which kinds the cluster serves
			if err != nil {
				return err
			}
			return job.Check(ctx, c, cmd.ErrOrStderr())
		}
		return err
	}
	cmd.Flags().StringArrayVar(&settings, "set", nil, "setting of 'mlbatch submit' that is different, such as numGpusPerPod=2")
	cmd.Flags().StringArrayVar(&annotations, "annotate", nil, "annotation of the copy, NAME=VALUE, or NAME- to remove it; retryLimit is short for workload.codeflare.dev.appwrapper/retryLimit")
	return cmd
}
