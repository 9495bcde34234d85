// SPDX-License-Identifier: Apache-2.0

package work

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/tools/mlbatch/printing"
	"github.com/mlbatch/mlbatch/tools/mlbatch/runs"
)

// WriteText prints a report for people.
func (r Report) WriteText(out io.Writer, now time.Time) error {
	fmt.Fprintf(out, "%s.\n", r.Sentence)
	if r.Reason != "" {
		fmt.Fprintf(out, "%s: %s: see 'mlbatch why %s'\n", r.Reason, r.Means, r.Name)
	}
	fmt.Fprintln(out)
	for _, table := range r.Tables(now) {
		if table[0][0] == strings.ToUpper(table[0][0]) { // it has headings
			fmt.Fprintln(out)
		}
		if err := printing.Table(out, table); err != nil {
			return err
		}
	}
	switch {
	case r.RunFailure != nil:
		fmt.Fprintln(out)
		runs.WriteFailure(out, *r.RunFailure)
	case len(r.Pods) == 0:
		fmt.Fprint(out, lastWords(&v1beta2.AppWrapper{Status: v1beta2.AppWrapperStatus{LastAttempts: r.LastAttempts}}))
	}
	for _, unknown := range r.Unknown {
		fmt.Fprintln(out, "unknown:", printing.OneLine(unknown))
	}
	return nil
}

// Tables are those that have rows: facts, and below their headings steps, components and pods.
func (r Report) Tables(now time.Time) [][][]string {
	all := [][][]string{r.facts(now), r.steps(), r.components(), r.pods()}
	return slices.DeleteFunc(all, func(table [][]string) bool { return len(table) == 0 })
}

// stage is what 'mlbatch list' says. The time is that of the phase, which is named if it has another name.
func (r Report) stage() string {
	if r.Stage == "" || r.Stage == r.State {
		return r.State + " for "
	}
	return fmt.Sprintf("%s, phase %s for ", r.Stage, r.State)
}

// facts are rows of a name and a value.
func (r Report) facts(now time.Time) [][]string {
	rows := [][]string{{"Queue", r.Queue}, {"State", r.stage() + cmp.Or(since(r.Since, now), "an unknown time")}}
	if r.Application != "" {
		rows = append(rows, []string{"Application", r.Application})
	}
	if r.Size != "" {
		rows = append(rows, []string{"Size", r.Size})
	}
	if r.Priority != nil {
		rows = append(rows, []string{"Priority", strconv.Itoa(int(*r.Priority))})
	}
	if r.Kind == "AppWrapper" || len(r.Components) > 0 {
		rows = append(rows, []string{"Retries", r.retries()}, []string{"Migrations", strconv.Itoa(int(r.Migrations))})
	}
	for _, n := range r.AvoidedNodes {
		rows = append(rows, []string{"Avoids", fmt.Sprintf("node %s until %s: %s", n.Name, n.Until.UTC().Format(time.RFC3339), n.Cause)})
	}
	if f := r.LastFailure; f != nil {
		rows = append(rows, []string{"Last failure", strings.TrimSuffix(fmt.Sprintf("%s ago: %s: %s", since(f.At, now), f.Reason, f.Message), ": ")})
	}
	var on []string
	for _, n := range nodes(r.Pods) {
		on = append(on, fmt.Sprintf("%s (%d)", n.name, n.pods))
	}
	if len(on) > 0 {
		rows = append(rows, []string{"Nodes", strings.Join(on, ", ")})
	}
	return rows
}

// retries are those of failures and those of late starts. Each have the limit for themselves.
func (r Report) retries() string {
	limit := ""
	if r.RetryLimit != "" {
		limit = " of at most " + r.RetryLimit
	}
	text := strconv.Itoa(int(r.Retries-r.Starts)) + limit
	if r.Starts > 0 {
		text += fmt.Sprintf(", and %d%s because of late starts", r.Starts, limit)
	}
	return text
}

func (r Report) components() [][]string {
	if len(r.Components) == 0 {
		return nil
	}
	rows := [][]string{{"COMPONENT", "KIND", "PODS", "STATE"}}
	for _, c := range r.Components {
		rows = append(rows, []string{c.Name, c.Kind, strconv.Itoa(int(c.Pods)), c.State})
	}
	return rows
}

func (r Report) steps() [][]string {
	if len(r.Steps) == 0 {
		return nil
	}
	rows := [][]string{{"STEP", "STATE", "REASON", "APPWRAPPER", "MESSAGE"}}
	for _, s := range r.Steps {
		rows = append(rows, []string{s.Name, s.State, string(s.Reason), s.AppWrapper, s.Message})
	}
	return rows
}

// pods are in the order of their nodes.
func (r Report) pods() [][]string {
	if len(r.Pods) == 0 {
		return nil
	}
	rows := [][]string{{"NODE", "POD", "STEP", "RANK", "ROLE", "STATE"}}
	for _, p := range r.Pods {
		rows = append(rows, []string{p.Node, p.Name, p.Step, p.Number(), p.Role, p.State})
	}
	if len(r.Steps) == 0 {
		for i := range rows {
			rows[i] = slices.Delete(rows[i], 2, 3)
		}
	}
	slices.SortStableFunc(rows[1:], func(a, b []string) int { return cmp.Compare(a[0], b[0]) })
	return rows
}
