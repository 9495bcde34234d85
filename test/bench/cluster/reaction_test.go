// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package cluster_test

import (
	"flag"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/scheme"
	jobset "sigs.k8s.io/jobset/api/jobset/v1alpha2"

	"github.com/mlbatch/mlbatch/test/bench"
	"github.com/mlbatch/mlbatch/test/sandbox"
)

var (
	fleetNodes = flag.Int("bench.nodes", 50, "nodes on which faults are injected")
	fleetPods  = flag.Int("bench.pods", 400, "pods that run there: half of them of AppWrappers, half of JobSets; then all of Jobs with Kueue")
	struck     = flag.String("bench.struck", "1,5", "how many nodes fail at once, one after the other")
	sorts      = flag.String("bench.faults", "label,taint,crash,lost", "faults that are injected")
	longest    = flag.Duration("bench.longest", time.Hour, "leave out faults that may take longer: many nodes that are lost take Kubernetes long")
)

// watchingLabels are values with which the label concerns all pods: those here request no GPUs, of which a
// node has too few.
var watchingLabels = map[string]any{"appwrapper": map[string]any{"config": map[string]any{"appwrapper": map[string]any{
	"autopilot": map[string]any{"resourceTaints": map[string]any{string(corev1.ResourceCPU): []any{
		map[string]any{"key": gpuHealth, "value": "EVICT", "effect": string(corev1.TaintEffectNoExecute)},
	}}},
}}}}

// Nodes fail under AppWrappers and under JobSets, the same nodes at the same moment, and then under as many Jobs
// with Kueue. What follows is timed, and nothing about it is asserted: not even that everybody comes back.
func TestReaction(t *testing.T) {
	counts := numbers(t, *struck)
	if err := jobset.AddToScheme(scheme.Scheme); err != nil {
		t.Fatal(err)
	}
	admin, _ := sandbox.StartEveryPart(t, "bench-react", 26651, *fleetNodes, withJobs(t, watchingLabels))
	head := describe(t)
	var measured bench.Reactions
	for _, p := range populations {
		t.Run(p.name, func(t *testing.T) {
			f := newFleet(t, admin, *fleetPods, p.restarters)
			began := time.Now()
			f.create()
			if err := f.allRun(time.Hour); err != nil {
				t.Fatal(err)
			}
			t.Logf("%d pods run on %d nodes after %s", f.size(), *fleetNodes, time.Since(began).Round(time.Second))
			f.strikes(counts, func(results []bench.Reaction) {
				r := bench.Sitting{Head: head, Nodes: *fleetNodes, Pods: f.size(), Results: results}
				measured = measured.With(r)
				if *report != "" { // now, because the next may fail, and each takes minutes
					all := kept(t)
					all.Reactions = all.Reactions.With(r)
					keep(t, *report, all)
				}
			})
			f.remove()
		})
	}
	for _, s := range measured {
		t.Logf("\n%s\n\n%s", s.Head, s.Table())
	}
}

// strikes yields the results of one fault after the other, until jobs stay away for good.
func (f *fleet) strikes(counts []int, yield func([]bench.Reaction)) {
	f.Helper()
	for _, b := range blows {
		if !slices.Contains(strings.Split(*sorts, ","), b.name) || !slices.ContainsFunc(f.restarters, b.seen) {
			continue
		}
		for _, n := range counts {
			if b.limit(n) > *longest {
				f.Logf("%s of %d nodes is left out: it may take %s", b.name, n, b.limit(n))
				continue
			}
			yield(f.strike(b, n))
			if err := f.allRun(30 * time.Minute); err != nil {
				f.Logf("the measurement ends after %s of %d nodes, because not all come back: %v", b.name, n, err)
				return
			}
		}
	}
}

func numbers(t *testing.T, list string) (all []int) {
	t.Helper()
	for _, text := range strings.Split(list, ",") {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > *fleetNodes {
			t.Fatalf("-bench.struck: %q is no number of nodes of %d", text, *fleetNodes)
		}
		all = append(all, n)
	}
	return all
}

// strike lets nodes fail, waits until all jobs that had pods there run again, or until it is too late,
// and makes the nodes good again.
func (f *fleet) strike(b blow, n int) []bench.Reaction {
	f.Helper()
	nodes := f.next(n)
	falls := f.begin(nodes, b)
	began := time.Now()
	f.inEach(nodes, b.strike)
	late := sandbox.Within(f.Context(), b.limit(n), func() error {
		for by, fall := range falls {
			if n := fall.Late(); n > 0 {
				return fmt.Errorf("%d of %s do not run", n, by)
			}
		}
		return nil
	})
	if late != nil {
		f.Logf("%s of %d nodes: %v", b.name, n, late)
	}
	f.Logf("%s of %d nodes took %s", b.name, n, time.Since(began).Round(time.Second))
	var results []bench.Reaction
	for _, r := range f.restarters {
		if fall, is := falls[r.by]; is {
			results = append(results, fall.Reaction(r.by, b.name))
		}
	}
	f.end()
	f.inEach(nodes, b.heal)
	return results
}
