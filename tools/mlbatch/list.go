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
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mlbatch/mlbatch/tools/mlbatch/clusterstate"
	"github.com/mlbatch/mlbatch/tools/mlbatch/work"
)

// listing is what flags say about a list.
type listing struct {
	where                 runNamespace
	everywhere, mine, all bool
	states                []string
	selector              string
	every                 time.Duration
	output                output
}

func listCommand() *cobra.Command {
	var l listing
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List AppWrappers, Runs and queued jobs, and say in a word why they wait",
		Long: "List the AppWrappers and Runs of a namespace, and bare jobs that are in a queue, the newest first. REASON is the\n" +
			"first cause that 'mlbatch why' names. What ended more than a day ago is left out of the table without --all.\n" +
			"It reads eight lists, whatever there is, and changes nothing.",
		Example: "  mlbatch list --me\n  mlbatch list --state queued,failed --all\n  mlbatch list -l project=vision --watch",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return l.run(cmd) },
	}
	flags := cmd.Flags()
	l.where.bind(flags, ofTheWork)
	flags.BoolVarP(&l.everywhere, "all-namespaces", "A", false, "list the work of all namespaces")
	flags.BoolVar(&l.mine, "me", false, "only what I have created")
	flags.BoolVar(&l.all, "all", false, "also what ended more than a day ago")
	flags.StringSliceVar(&l.states, "state", nil, "only work in these states, such as queued,running")
	flags.StringVarP(&l.selector, "selector", "l", "", "only work with these labels, such as project=vision")
	bindWatch(flags, &l.every)
	l.output.bindTable(flags, "wide")
	return cmd
}

func (l *listing) run(cmd *cobra.Command) error {
	if err := l.where.orAll(l.everywhere); err != nil {
		return err
	}
	if err := watchable(l.every, l.output); err != nil {
		return err
	}
	f, err := l.filter()
	if err != nil {
		return err
	}
	c, namespace, err := l.where.connectReader(cmd)
	if err != nil {
		return err
	}
	if l.everywhere {
		namespace = ""
	}
	if l.mine {
		if f.User, err = clusterstate.User(cmd.Context(), c); err != nil {
			return err
		}
	}
	return onScreen(cmd, l.every, func(out, notes io.Writer) error { return l.show(cmd.Context(), c, namespace, f, out, notes) })
}

// filter is what is wanted, but for who asks.
func (l *listing) filter() (f work.Filter, err error) {
	if f.Stages, err = work.ParseStages(l.states); err != nil {
		return f, err
	}
	if f.Labels, err = selecting(l.selector); err != nil {
		return f, err
	}
	if !l.all && !l.output.forPrograms() {
		f.Ended = 24 * time.Hour
	}
	return f, nil
}

// selecting reads a label selector. An empty one selects everything.
func selecting(text string) (labels.Selector, error) {
	selector, err := labels.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("cannot read --selector %s: write NAME=VALUE, such as project=vision: %w", text, err)
	}
	return selector, nil
}

func (l *listing) show(ctx context.Context, c client.Client, namespace string, f work.Filter, out, notes io.Writer) error {
	now := time.Now()
	all, err := work.List(ctx, c, namespace, now)
	if err != nil {
		return err
	}
	printNotes(notes, all.Unknown)
	wanted, past := all.Only(f, now)
	return l.output.print(out, "WorkList", wanted, func() error {
		switch {
		case len(wanted.Items) > 0:
			err = wanted.WriteTable(out, work.Columns{Namespace: namespace == "", Wide: l.output.format == "wide"}, now)
		case len(all.Items) == 0:
			fmt.Fprintln(notes, "there is no work in", cmp.Or(namespace, "any namespace"))
		case past == 0:
			fmt.Fprintf(notes, "none of %d pieces of work is as the flags say\n", len(all.Items))
		}
		if past > 0 {
			fmt.Fprintf(notes, "%d more ended more than a day ago: see them with --all\n", past)
		}
		return err
	})
}

// watchable is an error if what is to be shown again cannot be.
func watchable(every time.Duration, o output) error {
	if every != 0 && (every < time.Second || o.forPrograms()) {
		return errors.New("--watch takes at least a second, and tables only")
	}
	return nil
}
