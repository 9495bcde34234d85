// SPDX-License-Identifier: Apache-2.0

package preemption

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	config "sigs.k8s.io/kueue/apis/config/v1beta2"
	queue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	"sigs.k8s.io/kueue/pkg/features"
)

const month = 30 * 24 * time.Hour

// mostIn is how often a job can be preempted within a time if its pauses double: those between the
// third and the nth preemption are 1 + 2 + 4 + … = 2^(n-3) - 1 minutes. In a month, it is 18 times.
func mostIn(d time.Duration) int { return 3 + int(math.Log2(d.Minutes()+1)) }

// doubling is no pause after the first two preemptions, then a minute, two, four and so on.
func doubling(n int) time.Duration {
	if n < 3 {
		return 0
	}
	return time.Minute << (n - 3)
}

// asBefore is the settings of release 0.1.0.
func asBefore(t *testing.T) Settings {
	s := ours(t)
	features.SetFeatureGateDuringTest(t, features.PrioritizePreemptorWorkloads, false)
	s.Preemption.WithinClusterQueue = queue.PreemptionPolicyLowerOrNewerEqualPriority
	s.Sharing = &config.FairSharing{PreemptionStrategies: []config.PreemptionStrategy{config.LessThanOrEqualToFinalShare, config.LessThanInitialShare}}
	return s
}

var releases = map[string]func(*testing.T) Settings{"our settings": ours, "the settings of 0.1.0": asBefore}

// No release has this pause: decision 16 says what it needs. This shows that Kueue's queues honour
// status.requeueState after a preemption, and that the pause then bounds all turns.
func TestAPauseThatDoublesBoundsAllTurns(t *testing.T) {
	for name, settings := range releases {
		t.Run(name, func(t *testing.T) {
			s := settings(t)
			most := map[int]int{}
			for how, stopping := range stops {
				for seed := *first; seed < *first+uint64(*rounds); seed++ {
					c := randomOf(seed).cluster()
					c.Stopping, c.Pause, c.Until = stopping, doubling, month
					o := Run(c, s)
					most[o.Most()]++
					if o.Most() > mostIn(o.After) {
						t.Errorf("stopping %s, seed %d: a job was preempted %d times in %s", how, seed, o.Most(), o.After)
					}
				}
			}
			t.Logf("clusters by their highest number of preemptions of a job: %v", most)
			urgent := turns(5)
			urgent.Stopping, urgent.Pause, urgent.Until = exactly(30*time.Second), doubling, month
			if o := run(urgent, s); !o.Ended {
				t.Errorf("the turns of TestUrgentJobsThatBorrowStillTakeTurns should end while one of the jobs is paused:\n%s", strings.Join(o.Log, "\n"))
			}
		})
	}
}

// TestMeasurePause prints what a pause gives and costs in a day.
func TestMeasurePause(t *testing.T) {
	if *measure == 0 {
		t.Skip("for the price of a pause, set -preemption.measure")
	}
	for name, settings := range releases {
		s := settings(t)
		for _, pause := range []func(int) time.Duration{nil, doubling} {
			var lost, paused time.Duration
			turns, pausedIn, open, most := 0, 0, 0, 0
			for seed := *first; seed < *first+uint64(*measure); seed++ {
				c := randomOf(seed).cluster()
				c.Stopping, c.Pause, c.Until = stops["after 30 s"], pause, 24*time.Hour
				o := Run(c, s)
				lost, paused, most = lost+o.Lost, paused+o.Paused, max(most, o.Most())
				if o.Most() > 3 {
					turns++
				}
				if o.Paused > 0 {
					pausedIn++
				}
				if !o.Ended {
					open++
				}
			}
			fmt.Printf("%s, pause: %t: in %d of %d clusters a job was preempted more than 3 times, at most %d; %d had not ended; %.0f GPU-hours lost, %.0f hours paused in %d clusters\n",
				name, pause != nil, turns, *measure, most, open, lost.Hours(), paused.Hours(), pausedIn)
		}
	}
}

// stream is a team whose small jobs keep all its GPUs busy for three days, and a big one, which
// comes after two hours and needs all of them.
func stream() Cluster {
	text := strings.Repeat("red small-%03d 4 0 0,", 4) + "red big 16 0 0" + strings.Repeat(",red small-%03d 4 0 0", 140)
	var numbers []any
	for i := range 144 {
		numbers = append(numbers, i)
	}
	return Cluster{
		Queues: []queue.ClusterQueue{row("red", 16)}, Jobs: jobs(fmt.Sprintf(text, numbers...)),
		Apart: 30 * time.Minute, Runs: exactly(2 * time.Hour), Stopping: exactly(30 * time.Second),
	}
}

// Small jobs of the same team and priority keep a big one waiting as long as they come. With the
// setting of 0.1.0, it waits only for those that were there before. docs/quota.md says both.
func TestSmallJobsKeepABigOneWaiting(t *testing.T) {
	for within, most := range map[queue.PreemptionPolicy]time.Duration{
		queue.PreemptionPolicyLowerPriority:             73 * time.Hour,
		queue.PreemptionPolicyLowerOrNewerEqualPriority: 3 * time.Hour,
	} {
		s := ours(t)
		s.Preemption.WithinClusterQueue = within
		o := run(stream(), s)
		waited, stopped := o.Started["big"]-5*30*time.Minute, strings.Count(strings.Join(o.Log, "\n"), "is preempted")
		t.Logf("%s: the big job waits %s, %d small ones are preempted", within, waited, stopped)
		if o.Started["big"] == 0 || waited > most || waited < most-3*time.Hour {
			t.Errorf("%s: the big job waits %s", within, waited)
		}
	}
}
