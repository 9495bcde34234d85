// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
)

// printResults prints the result of every lane, and when each last passed. Continuous
// integration parses the last line.
func printResults(out io.Writer, lanes []lane, results map[string]result, log map[string]record) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "\nlane\tin this run\tminutes\tlast recorded green\t")
	passed, failed := 0, 0
	for _, l := range lanes {
		r := results[l.name]
		minutes := "-"
		if r.ran {
			minutes = fmt.Sprintf("%.1f", r.took.Minutes())
		}
		switch {
		case r.failed:
			failed++
		case r.ran && !r.cut:
			passed++
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", l.name, verdict(r), minutes, lastGreen(log, l), r.why)
	}
	w.Flush()
	printFlaky(out, lanes, results)
	printFailed(out, lanes, results)
	fmt.Fprintf(out, "\n%d passed, %d failed\n", passed, failed)
}

// linesAtTheEnd is how much of what failed tests of a lane said is at the end, which is what people see.
const linesAtTheEnd = 20

// printFailed repeats what the tests said that failed.
func printFailed(out io.Writer, lanes []lane, results map[string]result) {
	for _, l := range lanes {
		lines := slices.Collect(strings.Lines(results[l.name].said))
		if len(lines) == 0 {
			continue
		}
		shown := lines[:min(len(lines), linesAtTheEnd)]
		fmt.Fprintf(out, "\nIn %s failed:\n%s", l.name, strings.Join(shown, ""))
		if more := len(lines) - len(shown); more > 0 {
			fmt.Fprintf(out, "(%d lines more above)\n", more)
		}
	}
}

// printFlaky names the lanes that failed and then passed.
func printFlaky(out io.Writer, lanes []lane, results map[string]result) {
	for _, l := range lanes {
		if r := results[l.name]; r.flaky {
			fmt.Fprintf(out, "\n%s is flaky: it %s. Mend it before new work.\n", l.name, r.why)
		}
	}
}

func verdict(r result) string {
	switch {
	case r.failed:
		return "FAILED"
	case r.cut:
		return "cut short"
	case r.flaky:
		return "flaky"
	case r.ran:
		return "passed"
	}
	return "not run"
}

func lastGreen(log map[string]record, l lane) string {
	if r, ok := log[l.name]; ok {
		return r.String()
	}
	return "never"
}

// printLanes lists the lanes and their requirements.
func printLanes(out io.Writer, lanes []lane, log map[string]record) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "lane\trun by\tneeds\tminutes\tlast recorded green")
	for _, l := range lanes {
		runBy, needs, minutes := "make test-full", "", "-"
		if l.essential {
			runBy = "make test"
		}
		if l.root {
			needs = "root"
		}
		if r, ok := log[l.name]; ok {
			minutes = fmt.Sprintf("%.1f", r.took.Minutes())
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", l.name, runBy, needs, minutes, lastGreen(log, l))
	}
	w.Flush()
}
