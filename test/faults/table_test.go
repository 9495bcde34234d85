// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package faults_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// row is how long one fault took, once.
type row struct {
	sentence, cause     string
	detected, recovered time.Duration
	// gpus of the job do nothing from the fault until it runs again.
	gpus int64
}

// lost are the GPU-hours that the fault costs, besides what was done since the last checkpoint.
func (r row) lost() float64 {
	return max(r.detected, r.recovered).Hours() * float64(r.gpus)
}

// tabulate prints a line for each fault, and one for all of them.
func tabulate(t *testing.T, rows []row) {
	t.Helper()
	var table strings.Builder
	fmt.Fprintf(&table, "%-45s %-52s %7s %15s %15s %10s\n", "", "", "", "found", "runs again", "GPU-hours")
	fmt.Fprintf(&table, "%-45s %-52s %7s %7s %7s %7s %7s %10s\n", "fault", "cause", "rounds", "p50", "p99", "p50", "p99", "lost")
	var sentences []string
	for _, r := range rows {
		if !slices.Contains(sentences, r.sentence) {
			sentences = append(sentences, r.sentence)
		}
	}
	for _, sentence := range sentences {
		of := slices.DeleteFunc(slices.Clone(rows), func(r row) bool { return r.sentence != sentence })
		table.WriteString(line(sentence, of[0].cause, of))
	}
	table.WriteString(line("all", "", rows))
	t.Log("\n" + table.String())
}

func line(sentence, cause string, rows []row) string {
	lost := 0.0
	for _, r := range rows {
		lost += r.lost() / float64(len(rows))
	}
	detected := of(rows, func(r row) time.Duration { return r.detected })
	recovered := of(rows, func(r row) time.Duration { return r.recovered })
	return fmt.Sprintf("%-45s %-52s %7d %7s %7s %7s %7s %10.3f\n", sentence, cause, len(rows),
		percentile(detected, 50), percentile(detected, 99), percentile(recovered, 50), percentile(recovered, 99), lost)
}

// of are the times that there are, in order.
func of(rows []row, which func(row) time.Duration) []time.Duration {
	var times []time.Duration
	for _, r := range rows {
		if d := which(r); d > 0 {
			times = append(times, d)
		}
	}
	slices.Sort(times)
	return times
}

// percentile is the least of the times that so many of a hundred do not exceed.
func percentile(times []time.Duration, percent int) string {
	if len(times) == 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f s", times[(len(times)*percent+99)/100-1].Seconds())
}
