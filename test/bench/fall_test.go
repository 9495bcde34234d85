// SPDX-License-Identifier: Apache-2.0

package bench_test

import (
	"slices"
	"strings"
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

var began = time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)

func at(seconds int) time.Time { return began.Add(time.Duration(seconds) * time.Second) }

// seen tells a fall of pods.
type seen struct{ *bench.Fall }

func (s seen) runs(uid, node string, seconds int) {
	s.Hear(bench.Pod{Job: uid[:1], UID: uid, Node: node, Runs: true}, false, at(seconds))
}

func (s seen) ends(uid, node string, seconds int) {
	s.Hear(bench.Pod{Job: uid[:1], UID: uid, Node: node}, false, at(seconds))
}

func (s seen) goes(uid, node string, seconds int) {
	s.Hear(bench.Pod{Job: uid[:1], UID: uid, Node: node, Runs: true}, true, at(seconds))
}

func seconds(p50, p99 float64) bench.Quantiles {
	return bench.Quantiles{P50: 1000 * p50, P99: 1000 * p99}
}

func TestAFallIsTimedFromTheFaultUntilAllPodsRunElsewhere(t *testing.T) {
	f := seen{bench.NewFall(2, []string{"bad"}, false, three())}
	if got := f.Jobs(); !slices.Equal(got, []string{"a", "b"}) {
		t.Fatalf("hit are %q", got)
	}
	f.Detect("a", at(-1)) // of an earlier fault
	f.Hit("a", at(0))
	f.Hit("a", at(5)) // another of its pods
	f.Hit("b", at(1))
	f.Detect("a", at(2))
	f.Detect("a", at(3))
	f.runs("a3", "good", 3) // a2 and a3 run, but a1 does, too
	f.ends("a1", "bad", 4)
	want := bench.Reaction{By: "us", Fault: "x", Nodes: 1, Jobs: 2, Late: 1, Detected: seconds(2, 2), Again: seconds(4, 4)}
	if diff := cmp.Diff(want, f.Reaction("us", "x")); diff != "" {
		t.Errorf("a runs, with a pod from before, and b does not: %s", diff)
	}
	f.ends("b1", "bad", 3)
	f.goes("b2", "bad", 4)
	f.runs("b3", "good", 5)
	f.runs("b4", "bad", 6) // on the node that has failed
	f.ends("b3", "good", 7)
	f.runs("b5", "good", 8)
	f.runs("b6", "good", 11)
	f.runs("b7", "good", 60)
	f.runs("c9", "good", 9)
	want = bench.Reaction{By: "us", Fault: "x", Nodes: 1, Jobs: 2, Detected: seconds(2, 2), Reset: seconds(3, 3), Again: seconds(4, 10)}
	if diff := cmp.Diff(want, f.Reaction("us", "x")); diff != "" {
		t.Error(diff)
	}
}

// A gang that begins anew has stopped as a whole before.
func TestAGangIsResetWhenAllOfItHasStopped(t *testing.T) {
	f := seen{bench.NewFall(2, []string{"bad"}, true, three())}
	f.Hit("a", at(0))
	f.ends("a1", "bad", 1)
	f.goes("a2", "good", 3)
	f.runs("a3", "good", 5)
	f.runs("a4", "bad", 6)
	if got := f.Reaction("us", "x"); got.Reset != seconds(3, 3) || got.Again != seconds(6, 6) {
		t.Errorf("got %+v", got)
	}
}

// Where only programs have failed, their nodes are as good as others.
func TestPodsMayReturnToNodesThatAreGood(t *testing.T) {
	f := seen{bench.NewFall(2, []string{"bad"}, true, three())}
	f.Hit("b", at(0))
	f.ends("b1", "bad", 1)
	f.ends("b2", "bad", 2)
	f.runs("b3", "bad", 3)
	f.runs("b4", "bad", 4)
	if got := f.Reaction("us", "x"); got.Late != 1 || got.Again != seconds(4, 4) {
		t.Errorf("got %+v", got)
	}
}

func TestJobsThatDoNotRunAgainAreLate(t *testing.T) {
	f := bench.NewFall(2, []string{"bad"}, false, three())
	if got := f.Reaction("us", "x"); got.Late != 2 || got.Again != (bench.Quantiles{}) {
		t.Errorf("got %+v", got)
	}
}

func TestVictimsAreBusyAndFarApart(t *testing.T) {
	var pods []bench.Pod
	for node := range strings.SplitSeq("fedcbaa", "") {
		pods = append(pods, bench.Pod{Node: node, Runs: true})
	}
	pods = append(pods, bench.Pod{Node: "waits"})
	for _, c := range []struct {
		name, before string
		n            int
		want         string
	}{
		{"three of six", "", 3, "ace"},
		{"others than before", "af", 2, "bd"},
		{"as many as are left", "bcde", 2, "af"},
		{"too few are left", "bcdef", 2, "ad"},
		{"more than there are", "", 9, "abcdef"},
	} {
		before := map[string]bool{}
		for node := range strings.SplitSeq(c.before, "") {
			before[node] = true
		}
		if got := bench.Victims(pods, before, c.n); strings.Join(got, "") != c.want {
			t.Errorf("%s: got %q", c.name, got)
		}
	}
}
