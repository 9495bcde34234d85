// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// RivalFault is what followed one fault, once, where somebody else runs the same pods.
type RivalFault struct {
	// By whom they are run.
	By string `json:"by"`
	// Says is the fault, as in Fault.
	Says string `json:"says"`
	// Without says why the fault was not injected; then there is nothing else.
	Without string `json:"without,omitempty"`
	// Found is how long it took until anything was done about it, and Again until all pods ran again, where the
	// cause says so on other nodes. Zero if that did not happen within Limit.
	Found metav1.Duration `json:"found"`
	Again metav1.Duration `json:"again"`
	Limit metav1.Duration `json:"limit"`
}

func (r RivalFault) found() time.Duration { return r.Found.Duration }
func (r RivalFault) again() time.Duration { return r.Again.Duration }

// Against is a table of the same faults under others, and why some were not injected. It is empty if nothing was
// measured.
func (f Faults) Against() string {
	if len(f.Rivals) == 0 {
		return ""
	}
	columns := []string{"fault", "AppWrapper: found, s", "runs again, s"}
	for _, by := range f.rivals() {
		columns = append(columns, by+": found, s", "runs again, s")
	}
	t := newTable(columns...)
	for _, says := range f.says() {
		ours := f.of(says)
		harmless := !slices.ContainsFunc(ours, func(r Fault) bool { return r.Cause != "" })
		row := []string{says, inSeconds(happened(ours, Fault.found), half), inSeconds(happened(ours, Fault.again), half)}
		if harmless {
			row[1] = alone
		}
		for _, by := range f.rivals() {
			theirs := f.under(by, says)
			if harmless {
				row = append(row, theirs.moved(), "-")
				continue
			}
			row = append(row, theirs.within(RivalFault.found), theirs.within(RivalFault.again))
			if len(happened(ours, Fault.again)) == 0 {
				row[len(row)-1] = inSeconds(happened(theirs, RivalFault.again), half)
			}
		}
		t.row(row...)
	}
	return t.String() + f.without()
}

// rivals are those who were measured.
func (f Faults) rivals() (all []string) {
	for _, r := range f.Rivals {
		if !slices.Contains(all, r.By) {
			all = append(all, r.By)
		}
	}
	return all
}

// trials are one fault under one rival, as often as it was injected.
type trials []RivalFault

func (f Faults) under(by, says string) trials {
	return slices.DeleteFunc(slices.Clone(f.Rivals), func(r RivalFault) bool { return r.By != by || r.Says != says || r.Without != "" })
}

// within is the median time until something happened, and how often it did not.
func (t trials) within(when func(RivalFault) time.Duration) string {
	if len(t) == 0 {
		return "-"
	}
	times := happened(t, when)
	late, median := "not within "+fmt.Sprintf("%.0f", t[0].Limit.Seconds()), inSeconds(times, half)
	switch len(times) {
	case 0:
		return late
	case len(t):
		return median
	}
	return fmt.Sprintf("%s; %d of %d %s", median, len(t)-len(times), len(t), late)
}

// alone is said where nothing was to be done, and nothing was.
const alone = "left alone"

// moved is what was done where nothing was to be done.
func (t trials) moved() string {
	times := happened(t, RivalFault.found)
	switch {
	case len(t) == 0:
		return "-"
	case len(times) == 0:
		return alone
	}
	return fmt.Sprintf("stopped after %s, %d of %d", inSeconds(times, half), len(times), len(t))
}

// without lists the faults that were not injected, each once.
func (f Faults) without() string {
	var lines []string
	for _, r := range f.Rivals {
		line := fmt.Sprintf("- %s, %s: %s.\n", r.By, r.Says, r.Without)
		if r.Without != "" && !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	if len(lines) == 0 {
		return ""
	}
	return "\nNot injected:\n\n" + strings.Join(lines, "")
}
