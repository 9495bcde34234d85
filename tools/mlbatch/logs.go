// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mlbatch/mlbatch/tools/mlbatch/answers/explain"
	"github.com/mlbatch/mlbatch/tools/mlbatch/podlogs"
	"github.com/mlbatch/mlbatch/tools/mlbatch/submit"
	"github.com/mlbatch/mlbatch/tools/mlbatch/why"
	"github.com/mlbatch/mlbatch/tools/mlbatch/work"
)

// logsOf has the flags of mlbatch logs.
type logsOf struct {
	where  runNamespace
	wanted work.Selection
	rank   int
	number int64
	// tail is how many lines are wanted from the end of each log, or -1 for all of them.
	tail      int64
	since     time.Duration
	container string
	previous  bool
}

func logsOfWorkCommand() *cobra.Command {
	var l logsOf
	cmd := aboutWork(&cobra.Command{
		Use:     "logs NAME",
		Example: "  mlbatch logs train --follow\n  mlbatch logs train --rank 3 --tail 100\n  mlbatch logs train --all\n  mlbatch logs train --attempt 1",
		Short:   "Print the log of one pod of an AppWrapper, a Run or a job, or of all",
		Long: "Print the log of the only pod, or of the one with rank 0: the master of a PyTorchJob, or the first of an indexed\n" +
			"Job. A Run of api ray has the log of its submitter, which follows the program, or else of its head. --rank and --pod\n" +
			"choose another pod. Logs are there as long as the pods are: of an attempt that has failed, until its pods are gone.",
	}, &l.where, l.print)
	flags, logs := cmd.Flags(), cmd.RunE
	cmd.PreRunE = l.check
	cmd.RunE = func(cmd *cobra.Command, names []string) (err error) {
		if flags.Changed("index") {
			if names[0], l.rank, err = l.where.numbered(cmd, names[0], l.number); err != nil {
				return err
			}
		}
		return logs(cmd, names)
	}
	flags.IntVar(&l.rank, "rank", 0, "rank of the pod, from 0")
	flags.Int64Var(&l.number, "index", 0, "number of an array")
	flags.StringVar(&l.wanted.Pod, "pod", "", "name of the pod")
	flags.StringVar(&l.wanted.Step, "step", "", "step of a workflow (default: the only one that has pods)")
	flags.Int32Var(&l.wanted.Attempt, "attempt", 0, "number of the attempt, from 1 (default: the one whose pods are there)")
	flags.BoolVar(&l.wanted.All, "all", false, "print the logs of all pods; each line begins with the rank of its pod, or its name")
	flags.BoolVarP(&l.wanted.Follow, "follow", "f", false, "print what comes until the containers end")
	flags.Int64Var(&l.tail, "tail", -1, "only so many lines from the end of each log (default: all)")
	flags.DurationVar(&l.since, "since", 0, "only lines that are not older, such as 10m (default: all)")
	flags.StringVarP(&l.container, "container", "c", "", "container of the pod (default: the first, or the one that an annotation names)")
	flags.BoolVarP(&l.previous, "previous", "p", false, "print what the container wrote before it was restarted")
	cmd.MarkFlagsMutuallyExclusive("rank", "index", "pod", "all")
	cmd.MarkFlagsMutuallyExclusive("previous", "follow")
	return cmd
}

// check returns an error if a flag cannot be meant.
func (l *logsOf) check(cmd *cobra.Command, _ []string) error {
	switch {
	case l.rank < 0:
		return errors.New("--rank is negative: ranks are counted from 0")
	case cmd.Flags().Changed("attempt") && l.wanted.Attempt < 1:
		return errors.New("attempts are counted from 1: leave --attempt out for the present one")
	case cmd.Flags().Changed("tail") && l.tail < 0:
		return errors.New("--tail is negative: leave it out for all lines")
	case cmd.Flags().Changed("since") && l.since < time.Second:
		return errors.New("--since must be a second or longer, such as 10m")
	}
	return nil
}

// part opens only the part of a log that is wanted.
func (l *logsOf) part(open podlogs.Open) podlogs.Open {
	return func(ctx context.Context, namespace, pod string, options *corev1.PodLogOptions) (io.ReadCloser, error) {
		if l.tail >= 0 {
			options.TailLines = &l.tail
		}
		if l.since > 0 {
			options.SinceSeconds = new(int64(l.since.Seconds()))
		}
		options.Container, options.Previous = cmp.Or(l.container, options.Container), l.previous
		return open(ctx, namespace, pod, options)
	}
}

func (l *logsOf) print(cmd *cobra.Command, c client.WithWatch, found explain.Objects) error {
	if cmd.Flags().Changed("rank") || cmd.Flags().Changed("index") {
		l.wanted.Rank = &l.rank
	}
	open, err := l.where.openLog(cmd)
	if err != nil {
		return err
	}
	return work.Logs(cmd.Context(), c, l.part(open), found, l.wanted, cmd.OutOrStdout())
}

// numbered is the AppWrapper that has a number of an array, and the rank of the pod there.
func (n runNamespace) numbered(cmd *cobra.Command, array string, number int64) (name string, rank int, err error) {
	c, target, err := n.find(cmd, array)
	if err != nil {
		return "", 0, err
	}
	found, err := why.Find(cmd.Context(), c, target)
	switch {
	case absent(err):
		return fmt.Sprintf("%s-%d", array, number), 0, nil
	case err != nil:
		return "", 0, err
	case found.AppWrapper == nil:
		return "", 0, fmt.Errorf("%s is no array: use --rank", array)
	}
	rank, err = submit.RankOf(found.AppWrapper, number)
	return array, rank, err
}
