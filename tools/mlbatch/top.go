// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mlbatch/mlbatch/tools/mlbatch/answers/top"
	"github.com/mlbatch/mlbatch/tools/mlbatch/clusterstate"
)

func topCommand() *cobra.Command {
	var where runNamespace
	var o output
	var view string
	var all bool
	var every time.Duration
	cmd := &cobra.Command{
		Use:     "top",
		Example: "  mlbatch top\n  mlbatch top --all\n  mlbatch top --by flavor --watch",
		Short:   "Show what your team can start now, or the quota of all teams",
		Long: "Show what the team of the namespace can start now, in a line for each flavor. --all shows the quota of each team,\n" +
			"what is lent in each cohort, and whether the nodes have what is promised, as does a namespace without a queue, and\n" +
			"--output json. --by shows one of these alone, or nodes. Without the right to see ClusterQueues, you see the queues\n" +
			"of your namespace.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := viewOf(view); err != nil {
				return err
			}
			if err := watchable(every, o); err != nil {
				return err
			}
			c, namespace, err := where.connectReader(cmd)
			if err != nil {
				return err
			}
			if view == "" && !all && o.format == "table" {
				view = string(top.Own)
			}
			return onScreen(cmd, every, func(out, notes io.Writer) error {
				return printTop(cmd.Context(), c, namespace, top.View(view), o, out, notes)
			})
		},
	}
	where.bind(cmd.Flags(), "namespace of the team (default: the one in the context)")
	o.bindTable(cmd.Flags(), "wide")
	cmd.Flags().StringVar(&view, "by", "", "show only this: team, queue, node or flavor")
	cmd.Flags().BoolVar(&all, "all", false, "show all teams, cohorts and flavors")
	cmd.MarkFlagsMutuallyExclusive("all", "by")
	bindWatch(cmd.Flags(), &every)
	return cmd
}

// bindWatch adds the flag of tables that are shown again.
func bindWatch(flags *pflag.FlagSet, every *time.Duration) {
	flags.DurationVarP(every, "watch", "w", 0, "redraw the table each time so long has passed (-w alone: 5s)")
	flags.Lookup("watch").NoOptDefVal = "5s"
}

// onScreen shows a table once or, with --watch, until it is interrupted.
func onScreen(cmd *cobra.Command, every time.Duration, show func(out, notes io.Writer) error) error {
	if every == 0 {
		return show(cmd.OutOrStdout(), cmd.ErrOrStderr())
	}
	return redraw(cmd.Context(), cmd.OutOrStdout(), every, func(screen io.Writer) error { return show(screen, screen) })
}

// viewOf is an error if there is no such view.
func viewOf(name string) error {
	if all := top.Views(); name != "" && !slices.Contains(all, name) {
		return fmt.Errorf("cannot show anything by %s: use %s", name, strings.Join(all, ", "))
	}
	return nil
}

func printTop(ctx context.Context, c client.Client, namespace string, view top.View, o output, out, notes io.Writer) error {
	objects, err := clusterstate.Top(ctx, c, namespace, view)
	if err == nil && view == top.Own && !objects.HasOwn() {
		view = ""
		if objects.ClusterQueues != nil {
			objects, err = clusterstate.Top(ctx, c, namespace, view)
		}
	}
	if err != nil {
		return err
	}
	overview := top.Judge(objects, view)
	err = o.print(out, "QuotaOverview", overview.Answer(), func() error { return overview.WriteTable(out, o.format == "wide") })
	printNotes(notes, overview.Notes)
	switch {
	case !overview.Empty():
	case view == top.ByNode:
		fmt.Fprintln(notes, "there are no nodes")
	default:
		fmt.Fprintln(notes, "there are no queues")
	}
	return err
}

// Of a terminal: to the first line, and clear what follows in this line, and in all.
const toTop, clearLine, clearRest = "\x1b[H", "\x1b[K", "\x1b[J"

// redraw prints until it is interrupted, which is no error. On a terminal it prints in place.
func redraw(ctx context.Context, out io.Writer, every time.Duration, draw func(io.Writer) error) error {
	file, isFile := out.(*os.File)
	inPlace := isFile && term.IsTerminal(int(file.Fd()))
	for {
		var screen bytes.Buffer
		err := draw(&screen)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		text := screen.String() + "\n"
		if inPlace {
			text = toTop + strings.ReplaceAll(text, "\n", clearLine+"\n") + clearRest
		}
		if _, err := io.WriteString(out, text); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(every):
		}
	}
}
