// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mlbatch/mlbatch/test/fakeapiserver"
)

// What a life costs, with real caches and with the webhooks, from creation until the Run is gone.
// docs/evidence/performance.md says why each request is made. What the author may do is asked for once in ten
// seconds, and is known already.
var (
	ofALife  = map[string]int{"PATCH runs/status": 5, "POST appwrappers": 1, "POST events": 3}
	ofAWait  = more(ofALife, "PATCH runs/status")
	ofItsEnd = more(ofALife, "DELETE runs")
)

func more(of map[string]int, what string) map[string]int {
	all := maps.Clone(of)
	all[what]++
	return all
}

// TestTheBudgetOfARun lets Runs live one after the other and counts all requests of the cheapest
// life: in others a cache may be late, and another look is right.
func TestTheBudgetOfARun(t *testing.T) {
	for name, life := range map[string]struct {
		budget map[string]int
		allows func(verb, resource string) bool // nil allows all
		live   func(*platform, string)
	}{
		"one whose Application is there": {ofALife, nil, (*platform).runsAndSucceeds},
		"one that waits for it":          {ofAWait, nil, (*platform).waitsAndSucceeds},
		"one with a time to live":        {ofItsEnd, nil, func(p *platform, run string) { p.submit(run, `,"ttlSecondsAfterFinished":0`); p.succeeds(run) }},
		"one of a member of a team":      {ofALife, mayWrapJobs, (*platform).runsAndSucceeds},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlatform(t)
			p.api.Allows = life.allows
			var cheapest map[string]int
			for i := 0; i < 20 && (cheapest == nil || sum(cheapest) > sum(life.budget)); i++ {
				p.api.Requests()
				run := fmt.Sprintf("digits-%d", i)
				life.live(p, run)
				p.await("the end", func() bool { return p.api.Get("runs", keyOf(run)) == nil })
				p.delete("appwrappers", run) // as the garbage collector does
				counts := fakeapiserver.Count(p.quiet(life.budget["POST events"]))
				t.Logf("life %d: %v", i+1, counts)
				if cheapest == nil || sum(counts) < sum(cheapest) {
					cheapest = counts
				}
			}
			if diff := cmp.Diff(life.budget, cheapest); diff != "" {
				t.Errorf("the requests of a life (-budget +made)\n%s", diff)
			}
		})
	}
}

func sum(counts map[string]int) (all int) {
	for _, n := range counts {
		all += n
	}
	return all
}

// mayWrapJobs is what the chart lets members of teams do: they may wrap Jobs and JobSets, and not
// create them.
func mayWrapJobs(verb, resource string) bool {
	return (verb == "wrap") == (resource == "jobs" || resource == "jobsets")
}
