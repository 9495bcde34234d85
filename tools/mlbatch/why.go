// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mlbatch/mlbatch/tools/mlbatch/answers/explain"
	"github.com/mlbatch/mlbatch/tools/mlbatch/printing"
	"github.com/mlbatch/mlbatch/tools/mlbatch/runs"
	"github.com/mlbatch/mlbatch/tools/mlbatch/why"
)

func whyCommand() *cobra.Command {
	var where runNamespace
	var o output
	var watch bool
	cmd := &cobra.Command{
		Use:     "why NAME",
		Example: "  mlbatch why train\n  mlbatch why train --watch",
		Short:   "Say why work waits, does not start or has failed",
		Long: "Say why an AppWrapper, a Run or a bare job waits, does not start or has failed, what happens next, and what\n" +
			"you can do. If names are not unique, write KIND/NAME. It reads a few objects, and changes none.\n\n" +
			"--watch says it again whenever the state or the causes change, until the work has ended or you interrupt it.\n" +
			"Then the exit status is 0; if the work was deleted, it is 1.",
		Args: oneWork,
		RunE: func(cmd *cobra.Command, names []string) error {
			c, target, err := where.find(cmd, names[0])
			if err != nil {
				return err
			}
			if watch {
				return watchWhy(cmd, c, target, o)
			}
			return printWhy(cmd, c, target, o)
		},
	}
	where.bind(cmd.Flags(), ofTheWork)
	cmd.ValidArgsFunction = where.names
	cmd.Flags().BoolVarP(&watch, "watch", "w", false, "say it again whenever the state or the causes change, until the work has ended")
	o.bindTable(cmd.Flags())
	return cmd
}

// connectReader returns a client that does not ask the cluster which kinds it serves.
func (n runNamespace) connectReader(cmd *cobra.Command) (client.WithWatch, string, error) {
	config, namespace, err := configOf(cmd, n.cluster)
	if err != nil {
		return nil, "", err
	}
	scheme, err := runs.Scheme()
	if err != nil {
		return nil, "", err
	}
	c, err := client.NewWithWatch(config, client.Options{Scheme: scheme, Mapper: why.Mapper()})
	if err != nil {
		return nil, "", fmt.Errorf("cannot connect to the cluster: %w", err)
	}
	if n.name != "" {
		namespace = n.name
	}
	return c, namespace, nil
}

// oneWork is an error unless there is one name.
func oneWork(cmd *cobra.Command, names []string) error {
	if len(names) != 1 || names[0] == "" {
		return fmt.Errorf("name one AppWrapper, Run or job: %s NAME", cmd.CommandPath())
	}
	return nil
}

// names completes NAME and KIND/NAME for a shell.
func (n *runNamespace) names(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	c, namespace, err := n.connectReader(cmd)
	if err != nil || len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var names []string
	if kind, _, both := strings.Cut(typed, "/"); both {
		for _, name := range why.NamesOf(cmd.Context(), c, namespace, kind) {
			names = append(names, kind+"/"+name)
		}
	} else {
		names = append(why.Names(cmd.Context(), c, namespace), why.BareJobs(cmd.Context(), c, namespace)...)
	}
	slices.Sort(names)
	return slices.Compact(names), cobra.ShellCompDirectiveNoFileComp
}

// moreNames completes names that were not given yet.
func (n *runNamespace) moreNames(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	names, directive := n.names(cmd, nil, typed)
	return slices.DeleteFunc(names, func(name string) bool { return slices.Contains(args, name) }), directive
}

// find connects to the cluster, and reads what a command is about from NAME or KIND/NAME.
func (n runNamespace) find(cmd *cobra.Command, name string) (client.WithWatch, why.Target, error) {
	c, namespace, err := n.connectReader(cmd)
	if err != nil {
		return nil, why.Target{}, err
	}
	target, err := why.Parse(namespace, name)
	return c, target, err
}

func printWhy(cmd *cobra.Command, c client.Client, target why.Target, o output) error {
	now := time.Now()
	answer, err := why.Explain(cmd.Context(), c, target, now)
	if err != nil {
		return suggesting(err, target)
	}
	out := cmd.OutOrStdout()
	return o.print(out, "Explanation", explained(answer), func() error {
		_, err := io.WriteString(out, explain.Text(answer, now))
		return err
	})
}

func explained(answer explain.Explanation) any {
	return printing.Items[explain.Explanation]{Items: []explain.Explanation{answer}}
}

// watchWhy prints each explanation below its time; for programs, as an answer of its own.
func watchWhy(cmd *cobra.Command, c client.WithWatch, target why.Target, o output) error {
	out := cmd.OutOrStdout()
	show := func(answer explain.Explanation, now time.Time) error {
		return o.stream(out, "Explanation", explained(answer), func() error {
			_, err := fmt.Fprintf(out, "%s\n%s\n", now.UTC().Format(time.RFC3339), explain.Text(answer, now))
			return err
		})
	}
	unsure := func(err error) {
		fmt.Fprintf(cmd.ErrOrStderr(), "note: %s; it is tried again\n", printing.OneLine(err.Error()))
	}
	return suggesting(why.Watch(cmd.Context(), c, target, why.Usual(), why.Screen{Show: show, Unsure: unsure}), target)
}

// suggesting adds to an error what could have been meant.
func suggesting(err error, target why.Target) error {
	if none := (why.NotFoundError{}); errors.As(err, &none) {
		return fmt.Errorf("%w%s", err, meant(target.Name, none.Names))
	}
	return err
}

// meant says what to do about an unknown name.
func meant(name string, names []string) string {
	near := similar(name, names)
	switch {
	case len(near) > 0:
		return ": did you mean " + strings.Join(near, " or ") + "?"
	case len(names) > 0:
		return ": 'mlbatch list' lists what there is"
	}
	return ": is the namespace right?"
}

// similar returns at most three names that are near another one.
func similar(name string, names []string) []string {
	all := &cobra.Command{SuggestionsMinimumDistance: 2} // cobra knows how near words are
	for _, n := range names {
		all.AddCommand(&cobra.Command{Use: n, Run: func(*cobra.Command, []string) {}})
	}
	near := all.SuggestionsFor(name)
	slices.Sort(near)
	near = slices.Compact(near)
	return near[:min(len(near), 3)]
}
