// SPDX-License-Identifier: Apache-2.0

package bench_test

import (
	"testing"

	"github.com/mlbatch/mlbatch/test/bench"
)

func TestTheMemoryOfRunsIsBesideItsBar(t *testing.T) {
	took := func(mib float64) bench.Result {
		return bench.Result{Scenario: "runs", Memory: map[string]float64{bench.OfRuns: mib, bench.Ours: 70}}
	}
	r := bench.Report{Results: []bench.Result{took(44), took(43), {Scenario: "ours", Memory: map[string]float64{bench.OfRuns: 41}}}}
	all := []bench.Scenario{{Name: "runs", Says: "1,000 Runs", Runs: true, Number: 1000}, {Name: "ours", Number: 3}, {Name: "none", Runs: true}}
	want := "1,000 Runs: their controller took 43.5 (43.0–44.0) MiB at most.\nIt may take 45.9 MiB: 40 MiB, and 6 KiB for each Run.\n"
	if got := r.MemoryOfRuns(all); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
