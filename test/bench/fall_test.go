// SPDX-License-Identifier: Apache-2.0

package bench_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mlbatch/mlbatch/test/bench"
)

// three jobs of two pods each run: a and b have pods on the node bad, c has none.
func three() []bench.Pod {
	return []bench.Pod{
		{Job: "a", UID: "a1", Node: "bad", Runs: true}, {Job: "a", UID: "a2", Node: "good", Runs: true},
		{Job: "b", UID: "b1", Node: "bad", Runs: true}, {Job: "b", UID: "b2", Node: "bad", Runs: true},
		{Job: "c", UID: "c1", Node: "good", Runs: true}, {Job: "c", UID: "c2", Node: "good", Runs: true},
		{Job: "d", UID: "d1", Node: "bad"}, // it has ended before
	}
}

func TestAFallIsTimedFromTheFaultUntilAllPodsRunElsewhere(t *testing.T) {
	f := bench.NewFall(2, []string{"bad"}, three())
	if got := f.Jobs(); !slices.Equal(got, []string{"a", "b"}) {
		t.Fatalf("hit are %q", got)
	}
	began := time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	at := func(seconds int) time.Time { return began.Add(time.Duration(seconds) * time.Second) }
	ends := func(job string, n, seconds int) {
		f.Hear(bench.Pod{Job: job, UID: fmt.Sprint(job, n), Node: "bad"}, n == 2, at(seconds))
	}
	runs := func(job string, n int, node string, seconds int) {
		f.Hear(bench.Pod{Job: job, UID: fmt.Sprint(job, n), Node: node, Runs: true}, false, at(seconds))
	}
	f.Detect("a", at(-1)) // of an earlier fault
	f.Hit("a", at(0))
	f.Hit("a", at(5)) // another of its pods
	f.Hit("b", at(1))
	f.Detect("a", at(2))
	f.Detect("a", at(3))
	runs("a", 2, "good", 3) // still that from before
	ends("a", 1, 4)
	runs("a", 3, "good", 5) // one from before is left
	ends("a", 2, 6)
	runs("a", 4, "bad", 7) // on the node that has failed
	runs("a", 5, "good", 8)
	runs("a", 6, "good", 60)
	runs("c", 9, "good", 9)
	if f.Late() != 1 {
		t.Errorf("%d do not run again, want b alone", f.Late())
	}
	ends("b", 1, 3)
	ends("b", 2, 4)
	runs("b", 3, "good", 5)
	f.Hear(bench.Pod{Job: "b", UID: "b3", Node: "good"}, false, at(6)) // fails again
	runs("b", 4, "good", 7)
	runs("b", 5, "good", 11)
	want := bench.Reaction{
		By: "us", Fault: "x", Nodes: 1, Jobs: 2,
		Detected: bench.Quantiles{P50: 2000, P99: 2000}, Reset: bench.Quantiles{P50: 3000, P99: 6000}, Again: bench.Quantiles{P50: 8000, P99: 10000},
	}
	if diff := cmp.Diff(want, f.Reaction("us", "x")); diff != "" {
		t.Error(diff)
	}
}

func TestJobsThatDoNotRunAgainAreLate(t *testing.T) {
	f := bench.NewFall(2, []string{"bad"}, three())
	if got := f.Reaction("us", "x"); got.Late != 2 || got.Again != (bench.Quantiles{}) {
		t.Errorf("got %+v", got)
	}
}
