// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package turns_test

import (
	"flag"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/mlbatch/mlbatch/test/sandbox"
)

// 39, 57 and 64 loop with the settings of 0.1.0; 0 and 3 are the first of those that do not in which
// somebody is preempted. Of those that loop in the simulation, they are the ones that loop here, too.
var seeds = flag.String("turns.seeds", "39,57,64,0,3", "seeds of random clusters")

const (
	// apart is between two arrivals in a cluster.
	apart = 3 * time.Second
	// calm is how long nobody is preempted, or waits for a time, until we call it the end.
	calm = 90 * time.Second
	// settles is how long our settings may take for that after the last arrival.
	settles = 10 * time.Minute
	// mostPreemptions is how often work is preempted at most before it waits until others end.
	mostPreemptions = 12
)

// watched is for the settings of 0.1.0, with which turns may have no end: then what was lost until
// then, and what is lost in an hour of turns, is the result.
var watched = flag.Duration("turns.watched", 5*time.Minute, "how long turns are watched after the last arrival, if they do not end")

// Several teams in cohorts with weights and limits, all full, with pods that end at once and pods
// that take 30 seconds. With our settings preemption ends, and nobody is preempted more often than
// docs/quota.md says. With those of version 0.1.0 it is counted only.
func TestPreemptionEndsOnFullClusters(t *testing.T) {
	drawn := clusters(t, strings.Split(*seeds, ","))
	t.Log("settings   stop  seed  preemptions  GPU-minutes lost  in an hour of turns  the last, after the last arrival  jobs × preemptions of each")
	for _, s := range []settings{ours(), before(t)} {
		t.Run(s.name, func(t *testing.T) { playAll(t, s, drawn) })
	}
}

// playAll plays all clusters at the same time.
func playAll(t *testing.T, s settings, drawn []random) {
	admin := s.cluster(t)
	createFlavors(t, admin)
	var plays []play
	for _, c := range drawn {
		for _, stop := range []string{"0s", "30s"} {
			plays = append(plays, play{c, stop})
			plays[len(plays)-1].create(t, admin, s.withinClusterQueue)
		}
	}
	w := watchWorkloads(t, admin)
	var arrivals sync.WaitGroup
	for _, p := range plays {
		arrivals.Go(func() { p.submit(t, admin, apart) })
	}
	arrivals.Wait()
	arrived := time.Now()
	if restless := sandbox.Within(t.Context(), s.watched, func() error { return w.calm(calm) }); restless != nil {
		t.Logf("%s: preemption goes on %s after the last arrival: %v", s.name, time.Since(arrived).Round(time.Second), restless)
		if s.ends {
			t.Error("it must end")
		}
	}
	for _, p := range plays {
		tell(t, s, p, w.count(plays, p, arrived), arrived)
	}
}

func tell(t *testing.T, s settings, p play, c count, arrived time.Time) {
	t.Helper()
	last := "none"
	if !c.last.IsZero() {
		last = c.last.Sub(arrived).Round(time.Second).String()
	}
	// Turns that go on lose as much in each hour. Those that have ended lose nothing more.
	hourly := "-"
	if time.Since(c.last) < calm {
		hourly = fmt.Sprintf("%.0f", c.late.Minutes()/time.Since(arrived).Hours())
	}
	jobs, most, sum := c.all()
	t.Logf("%-9s  %4s  %4d  %11d  %16.1f  %19s  %31s  %s", s.name, p.stop, p.Seed, sum, c.lost.Minutes(), hourly, last, c)
	if s.ends && most > mostPreemptions {
		t.Errorf("%s: a job was preempted %d times", p, most)
	}
	if jobs != len(p.Jobs) {
		t.Errorf("%s: %d Workloads for %d jobs", p, jobs, len(p.Jobs))
	}
}

func ours() settings {
	return settings{name: "ours", withinClusterQueue: kueue.PreemptionPolicyLowerPriority, watched: settles, ends: true}
}

// before are the settings of version 0.1.0.
func before(t *testing.T) settings {
	t.Helper()
	chart := defaults(t)
	strategies := chart.Kueue.ManagerConfig.Configuration.FairSharing.PreemptionStrategies
	if !slices.Equal(strategies, []string{"LessThanOrEqualToFinalShare"}) {
		t.Fatalf("the chart's strategies are %q", strategies)
	}
	old := map[string]any{"fairSharing": map[string]any{"preemptionStrategies": append(strategies, "LessThanInitialShare")}}
	gates := []map[string]any{}
	for _, gate := range chart.Kueue.ControllerManager.FeatureGates {
		gates = append(gates, map[string]any{"name": gate.Name, "enabled": gate.Enabled && gate.Name != "PrioritizePreemptorWorkloads"})
	}
	values := map[string]any{
		"kueue": map[string]any{
			"controllerManager": map[string]any{"featureGates": gates},
			"managerConfig":     map[string]any{"configuration": old},
		},
		"appwrapper": map[string]any{"config": map[string]any{"appwrapper": map[string]any{"preemptionPause": map[string]any{"after": 0}}}},
	}
	return settings{name: "of 0.1.0", withinClusterQueue: kueue.PreemptionPolicyLowerOrNewerEqualPriority, values: values, watched: *watched}
}
