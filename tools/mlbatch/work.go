// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mlbatch/mlbatch/tools/mlbatch/answers/explain"
	"github.com/mlbatch/mlbatch/tools/mlbatch/printing"
	"github.com/mlbatch/mlbatch/tools/mlbatch/why"
	"github.com/mlbatch/mlbatch/tools/mlbatch/work"
)

const ofTheWork = "namespace of the work (default: the one in the context)"

func statusOfWorkCommand() *cobra.Command {
	var where runNamespace
	var o output
	cmd := &cobra.Command{
		Use:   "status NAME",
		Short: "Say how far an AppWrapper, a Run or a job is",
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
			if err != nil {
				return suggesting(err, target)
			}
			out := cmd.OutOrStdout()
			return o.print(out, "WorkStatus", printing.Items[work.Report]{Items: []work.Report{report}}, func() error { return report.WriteText(out, now) })
		},
	}
	where.bind(cmd.Flags(), ofTheWork)
	cmd.ValidArgsFunction = where.names
	o.bindTable(cmd.Flags())
	return cmd
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
		Use:   "wait NAME",
		Short: "Wait until work ends; the exit status is 0 if it succeeds",
		Long: "Wait until an AppWrapper, a Run or a bare job ends, and print its progress to standard error. The exit status is\n" +
			"0 if it succeeds, and 1 if it fails, is deleted or cannot be followed.",
	}, &runNamespace{}, func(cmd *cobra.Command, c client.WithWatch, found explain.Objects) error {
		return work.Wait(cmd.Context(), c, found, cmd.ErrOrStderr())
	})
}

func cancelWorkCommand() *cobra.Command {
	var sure bool
	cmd := aboutWork(&cobra.Command{
		Use:   "cancel NAME",
		Short: "Delete an AppWrapper or a job, or end a Run, after asking",
		Long: "Delete an AppWrapper or a bare job with all that it has created. A Run is ended, and its record is kept. The\n" +
			"question is asked on standard error; --yes answers it.",
	}, &runNamespace{}, func(cmd *cobra.Command, c client.WithWatch, found explain.Objects) error {
		if !sure && !confirmed(cmd, work.Ending(found)) {
			return errors.New("nothing was cancelled: answer yes, or use --yes")
		}
		return work.Cancel(cmd.Context(), c, found, cmd.OutOrStdout())
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

func retryWorkCommand() *cobra.Command {
	return aboutWork(&cobra.Command{
		Use:   "retry NAME",
		Short: "Submit an AppWrapper that has ended, or a Run, again as NAME-2",
	}, &runNamespace{}, func(cmd *cobra.Command, c client.WithWatch, found explain.Objects) error {
		return work.Retry(cmd.Context(), c, found, cmd.OutOrStdout())
	})
}

func logsOfWorkCommand() *cobra.Command {
	var where runNamespace
	var wanted work.Selection
	var rank int
	cmd := aboutWork(&cobra.Command{
		Use:   "logs NAME",
		Short: "Print the log of one pod of an AppWrapper, a Run or a job, or of all",
		Long: "Print the log of the only pod, or of the one with rank 0: the master of a PyTorchJob, or the first of an indexed\n" +
			"Job. A Run of api ray has the log of its submitter, which follows the program, or else of its head. --rank and --pod\n" +
			"choose another pod. Logs are there as long as the pods are: of an attempt that has failed, until its pods are gone.",
	}, &where, func(cmd *cobra.Command, c client.WithWatch, found explain.Objects) error {
		if cmd.Flags().Changed("rank") {
			wanted.Rank = &rank
		}
		open, err := where.openLog(cmd)
		if err != nil {
			return err
		}
		return work.Logs(cmd.Context(), c, open, found, wanted, cmd.OutOrStdout())
	})
	flags := cmd.Flags()
	cmd.PreRunE = func(cmd *cobra.Command, _ []string) error {
		switch {
		case rank < 0:
			return errors.New("--rank is negative: ranks are counted from 0")
		case cmd.Flags().Changed("attempt") && wanted.Attempt < 1:
			return errors.New("attempts are counted from 1: leave --attempt out for the present one")
		}
		return nil
	}
	flags.IntVar(&rank, "rank", 0, "rank of the pod, from 0")
	flags.StringVar(&wanted.Pod, "pod", "", "name of the pod")
	flags.StringVar(&wanted.Step, "step", "", "step of a workflow (default: the only one that has pods)")
	flags.Int32Var(&wanted.Attempt, "attempt", 0, "number of the attempt, from 1 (default: the one whose pods are there)")
	flags.BoolVar(&wanted.All, "all", false, "print the logs of all pods; each line begins with the rank of its pod, or its name")
	flags.BoolVarP(&wanted.Follow, "follow", "f", false, "print what comes until the containers end")
	cmd.MarkFlagsMutuallyExclusive("rank", "pod", "all")
	return cmd
}
