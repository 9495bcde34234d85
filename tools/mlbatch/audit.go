// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mlbatch/mlbatch/tools/commandline"
	"github.com/mlbatch/mlbatch/tools/mlbatch/answers/audit"
	"github.com/mlbatch/mlbatch/tools/mlbatch/install/access"
	"github.com/mlbatch/mlbatch/tools/mlbatch/printing"
	"github.com/mlbatch/mlbatch/tools/mlbatch/quota"
	"github.com/mlbatch/mlbatch/tools/mlbatch/snapshot"
)

// somethingFound is the exit status if a rule is broken. An audit that could not look ends with 1.
const somethingFound = commandline.ExitStatus(3)

// auditor has the flags of mlbatch audit.
type auditor struct {
	cluster    access.Cluster
	namespaces []string
	tolerance  audit.Tolerance
	watch      bool
	output     output
	// pause is the time between two looks.
	pause time.Duration
}

func auditCommand() *cobra.Command {
	a := auditor{pause: 10 * time.Second}
	cmd := &cobra.Command{
		Use:     "audit",
		Example: "  mlbatch audit --watch",
		Short:   "Find what gets past the quota on a cluster",
		Long: "Find pods that run without quota, quota that nothing uses, and other things that the platform promises to prevent\n" +
			"(docs/audit.md describes the rules). The command only reads; the ClusterRole mlbatch-audit has the permissions. What it\n" +
			"finds must still be there ten seconds later. Exit status: 0 if nothing was found, 3 if something was, 1 if the command\n" +
			"could not look. Notes, such as a quota that was lowered, do not change it.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := a.check(); err != nil {
				return err
			}
			api, _, err := connect(cmd, a.cluster)
			if err != nil {
				return err
			}
			return a.run(cmd.Context(), api, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	flags := cmd.Flags()
	flags.StringArrayVarP(&a.namespaces, "namespace", "n", nil, "audit only this namespace; may be repeated (default: all with the label "+quota.TeamLabel+"=true)")
	flags.StringArrayVar(&a.tolerance.Except, "except", nil, "NAMESPACE/KIND/NAME of the topmost owner of pods that are not audited, such as 'blue/DaemonSet/*'; may be repeated")
	flags.DurationVar(&a.tolerance.Grace, "grace", 2*time.Minute, "how long pods may take to end after their time is up; quota may be unused five times as long")
	flags.BoolVar(&a.watch, "watch", false, "look until interrupted, and print what appears and what is gone")
	a.output.bindTable(flags)
	bindCluster(flags, &a.cluster)
	return cmd
}

func (a auditor) check() error {
	for _, pattern := range a.tolerance.Except {
		if _, err := path.Match(pattern, ""); err != nil || strings.Count(pattern, "/") != 2 {
			return fmt.Errorf("cannot read --except %s: write NAMESPACE/KIND/NAME", pattern)
		}
	}
	if a.tolerance.Grace < 0 {
		return errors.New("--grace is negative: write a duration such as 2m")
	}
	return nil
}

func (a auditor) run(ctx context.Context, api client.Client, out, progress io.Writer) error {
	if a.watch {
		return a.follow(ctx, api, out, progress)
	}
	return a.once(ctx, api, out)
}

// look returns a moment and what breaks a rule in it.
func (a auditor) look(ctx context.Context, api client.Client) (audit.Moment, []audit.Finding, error) {
	m, err := snapshot.Read(ctx, api, time.Now(), a.namespaces)
	if err != nil {
		return m, nil, err
	}
	return m, m.Findings(a.tolerance), nil
}

// once looks, and looks again if there is something to confirm.
func (a auditor) once(ctx context.Context, api client.Client, out io.Writer) error {
	m, found, err := snapshot.Confirmed(ctx, api, a.namespaces, a.tolerance, a.pause)
	if err != nil {
		return err
	}
	err = a.output.print(out, "Audit", audit.Reported(m, found), func() error {
		printFindings(out, m, found)
		return nil
	})
	if err == nil && slices.ContainsFunc(found, broken) {
		return somethingFound
	}
	return err
}

// follow prints each finding when it is confirmed and when it is gone, until the context ends. It
// fails if it cannot look at first, or may not; later it tries again.
func (a auditor) follow(ctx context.Context, api client.Client, out, progress io.Writer) error {
	var s audit.Sightings
	var looked, lost, ever bool
	for ctx.Err() == nil {
		m, found, err := a.look(ctx, api)
		switch {
		case ctx.Err() != nil:
		case err != nil && (!looked || errors.Is(err, snapshot.ErrForbidden)):
			return err
		case err != nil:
			if !lost {
				fmt.Fprintf(progress, "%s; trying again\n", printing.OneLine(err.Error()))
			}
			lost = true
		default:
			looked, lost = true, false
			appeared, gone := s.Next(found)
			ever = ever || slices.ContainsFunc(appeared, broken)
			a.printChanges(out, m.Time, "found", appeared)
			a.printChanges(out, m.Time, "gone", gone)
		}
		wait(ctx, a.pause)
	}
	return outcome(ever, lost)
}

// outcome is how a command that was interrupted ends. It has printed why.
func outcome(found, lost bool) error {
	switch {
	case found:
		return somethingFound
	case lost:
		return commandline.ExitStatus(1)
	}
	return nil
}

// broken reports whether a finding changes the exit status.
func broken(f audit.Finding) bool { return !f.Note }

// wait reports whether the time has passed before the context ended.
func wait(ctx context.Context, pause time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(pause):
		return true
	}
}

func printFindings(out io.Writer, m audit.Moment, found []audit.Finding) {
	rule := ""
	for _, f := range found {
		if f.Rule != rule {
			rule = f.Rule
			fmt.Fprintf(out, "%s: %s\n", rule, f.Remedy)
		}
		fmt.Fprintf(out, "  %s%s\n", label(f), told(f))
	}
	notes := len(slices.DeleteFunc(slices.Clone(found), broken))
	fmt.Fprintf(out, "%d finding(s), %d note(s): looked at %d pods, %d AppWrappers and %d Services in namespaces %s; %d Workloads, %d ClusterQueues and %d nodes of the cluster; at revision %s\n",
		len(found)-notes, notes, len(m.Pods), len(m.AppWrappers), len(m.Services), strings.Join(m.Namespaces, ", "), len(m.Workloads), len(m.Queues), len(m.Nodes), m.Revision)
}

// told has no words that a terminal would obey: members choose the owners and the folders of their pods.
func told(f audit.Finding) string { return printing.OneLine(f.Object + ": " + f.Evidence) }

func label(f audit.Finding) string {
	if f.Note {
		return "note: "
	}
	return ""
}

// auditChange is what programs get with --watch.
type auditChange struct {
	Time time.Time `json:"time"`
	// Event is found or gone.
	Event string          `json:"event"`
	Items []audit.Finding `json:"items"`
}

func (a auditor) printChanges(out io.Writer, at time.Time, event string, all []audit.Finding) {
	if len(all) == 0 {
		return
	}
	// What cannot be printed cannot be reported either.
	_ = a.output.stream(out, "AuditChange", auditChange{at, event, all}, func() error {
		printLines(out, at, event, all)
		return nil
	})
}

func printLines(out io.Writer, at time.Time, event string, all []audit.Finding) {
	for _, f := range all {
		line := fmt.Sprintf("%s %s %s: %s%s", at.UTC().Format(time.RFC3339), event, f.Rule, label(f), told(f))
		if event == "found" {
			line += ": " + f.Remedy
		}
		fmt.Fprintln(out, line)
	}
}
