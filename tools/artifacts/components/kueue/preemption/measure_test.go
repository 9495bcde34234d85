// SPDX-License-Identifier: Apache-2.0

package preemption

import (
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	config "sigs.k8s.io/kueue/apis/config/v1beta2"
	queue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	"sigs.k8s.io/kueue/pkg/features"
)

var measure = flag.Int("preemption.measure", 0, "number of random clusters with which settings are compared")

// TestMeasure prints the table of docs/decisions/0016-preemption-that-ends.md.
func TestMeasure(t *testing.T) {
	if *measure == 0 {
		t.Skip("for a comparison of settings, set -preemption.measure")
	}
	final, initial := config.LessThanOrEqualToFinalShare, config.LessThanInitialShare
	for _, strategies := range [][]config.PreemptionStrategy{{final, initial}, {initial}, {final}} {
		for _, within := range []queue.PreemptionPolicy{queue.PreemptionPolicyLowerOrNewerEqualPriority, queue.PreemptionPolicyLowerPriority} {
			for _, preemptorFirst := range []bool{false, true} {
				features.SetFeatureGateDuringTest(t, features.PrioritizePreemptorWorkloads, preemptorFirst)
				s := Settings{policy(t), &config.FairSharing{PreemptionStrategies: strategies}}
				s.Preemption.WithinClusterQueue = within
				for _, how := range []string{"at once", "after 30 s"} {
					fmt.Printf("%v %s preemptor first: %t, %s: %s\n", strategies, within, preemptorFirst, how, compare(s, how))
				}
			}
		}
	}
}

func compare(settings Settings, how string) string {
	begin, loops, overtakenJobs, waiting := time.Now(), 0, 0, 0
	var lost time.Duration
	var each []int
	for seed := *first; seed < *first+uint64(*measure); seed++ {
		c := Random(seed)
		c.Stopping = stops[how]
		o := Run(c, settings)
		if !o.Ended {
			loops++
			continue
		}
		for _, j := range c.Jobs {
			each = append(each, o.Preemptions[j.Name])
		}
		lost += o.Lost
		waiting += len(c.Jobs) - len(o.Running)
		overtakenJobs += overtaken(c, o)
	}
	slices.Sort(each)
	at := func(percent int) int { return each[(len(each)-1)*percent/100] }
	return strings.TrimSpace(fmt.Sprintf("%d of %d loop; in the others, preemptions of a job: p50 %d, p99 %d, most %d; %.0f GPU-hours lost; %d jobs wait, %d of them overtaken (%.0f s)",
		loops, *measure, at(50), at(99), at(100), lost.Hours(), waiting, overtakenJobs, time.Since(begin).Seconds()))
}

// overtaken counts the jobs that wait while later ones of their team and priority run on as many
// GPUs as they need.
func overtaken(c Cluster, o Outcome) int {
	n := 0
	for i, j := range c.Jobs {
		var later int64
		for _, k := range c.Jobs[i+1:] {
			if k.Queue == j.Queue && k.Priority == j.Priority && slices.Contains(o.Running, k.Name) {
				later += k.GPUs
			}
		}
		if !slices.Contains(o.Running, j.Name) && j.GPUs > 0 && later >= j.GPUs {
			n++
		}
	}
	return n
}
