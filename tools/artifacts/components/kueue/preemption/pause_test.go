// SPDX-License-Identifier: Apache-2.0

package preemption

import (
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	api "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	config "sigs.k8s.io/kueue/apis/config/v1beta2"
	queue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	"sigs.k8s.io/kueue/pkg/features"
	"sigs.k8s.io/kueue/pkg/workload"
)

const (
	day = 24 * time.Hour
	own = 3 // as many as the preemption that begins the first pause
)

// pauses are those of our controller by default, which its own test writes: how long after its nth
// preemption a job is queued again, and from which on it also waits for the preemptor to end.
func pauses(t *testing.T) (pause func(n int) time.Duration, holds int) {
	t.Helper()
	text, err := os.ReadFile("../../../../../controller/internal/preemptionpause/testdata/pauses.golden")
	if err != nil {
		t.Fatal(err)
	}
	var all []time.Duration
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		d, err := time.ParseDuration(fields[1])
		if err != nil {
			t.Fatal(err)
		}
		if len(fields) > 2 && holds == 0 {
			holds = len(all)
		}
		all = append(all, d)
	}
	return func(n int) time.Duration { return all[min(n, len(all)-1)] }, holds
}

// mostIn is how often a job can be preempted within a time with these pauses.
func mostIn(d time.Duration, pause func(int) time.Duration) int {
	n := 1
	for ; d >= pause(n) && n < 1000; n++ {
		d -= pause(n)
	}
	return n
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

// Our controller's pause bounds all turns. If it comes too late for one, the next is longer.
func TestAPauseThatDoublesBoundsAllTurns(t *testing.T) {
	pause, _ := pauses(t)
	for name, settings := range releases {
		t.Run(name, func(t *testing.T) {
			s := settings(t)
			ever := map[int]int{}
			for how, stopping := range stops {
				for seed := *first; seed < *first+uint64(*rounds); seed++ {
					c := Random(seed)
					c.Stopping, c.Pause, c.Own, c.Until = stopping, pause, own, day
					o := Run(c, s)
					ever[o.MostEver()]++
					if o.MostEver() > own+mostIn(o.After, pause) {
						t.Errorf("stopping %s, seed %d: a job was preempted %d times in %s", how, seed, o.MostEver(), o.After)
					}
				}
			}
			t.Logf("clusters by their highest number of preemptions of a job: %v", ever)
			for how, stopping := range stops {
				for _, late := range []int{0, 5} {
					urgent := turns(5)
					urgent.Stopping, urgent.Pause, urgent.Own, urgent.Until, urgent.Late = stopping, pause, own, day, late
					if o := run(urgent, s); !o.Ended {
						t.Errorf("stopping %s, late up to %d: the turns of TestUrgentJobsThatBorrowStillTakeTurns should end while one of the jobs is paused:\n%s",
							how, late, strings.Join(o.Log, "\n"))
					}
				}
			}
		})
	}
}

// When the pause is over, our controller writes the condition Requeued. Without that, Kueue leaves
// the job aside if it has looked at it during the pause, as it does after a restart.
func TestKueueQueuesAgainOnlyIfItIsTold(t *testing.T) {
	c := Cluster{Queues: []queue.ClusterQueue{row("red", 8)}, Cohorts: []queue.Cohort{{ObjectMeta: api.ObjectMeta{Name: "organization"}}}}
	s := start(c, ours(t))
	s.arrive(jobs("red job 8 0 0")[0])
	key := client.ObjectKey{Namespace: "red", Name: "job"}
	s.queues.DeleteWorkload(s.log, "red/job")
	steps := []struct {
		name   string
		change func(*queue.Workload)
		queued int
	}{
		{"a pause", func(w *queue.Workload) {
			w.Status.RequeueState = &queue.RequeueState{RequeueAt: &api.Time{Time: s.clock.Now().Add(time.Minute)}}
			workload.SetRequeuedCondition(w, queue.WorkloadEvictedByPreemption, "", true)
		}, 0},
		{"its end alone", func(w *queue.Workload) { w.Status.RequeueState = nil }, 0},
		{"its end, with the condition", func(w *queue.Workload) {
			workload.SetRequeuedCondition(w, queue.WorkloadBackoffFinished, "", true)
		}, 1},
	}
	for _, step := range steps {
		s.patch(key, step.change)
		s.observe()
		if got := len(s.queues.Dump()); got != step.queued {
			t.Errorf("after %s, %d queues have the job, not %d", step.name, got, step.queued)
		}
	}
}

// lives are how long jobs run; what they did before a preemption is lost.
var lives = map[string]func(job string) time.Duration{
	"jobs without end":    nil,
	"jobs of 8 h to 48 h": func(job string) time.Duration { return 8*time.Hour + within(40*time.Hour)(job) },
}

// From its ninth preemption on, a job waits until the one that preempted it has ended. So each can
// preempt it only once from then on, and the number is bounded, however long we watch. This is so even
// with the settings of 0.1.0, and if our controller comes too late for the first pauses.
func TestPreemptionEndsBecauseWorkWaitsForOther(t *testing.T) {
	pause, holds := pauses(t)
	for name, settings := range releases {
		s := settings(t)
		for life, runs := range lives {
			ever := map[int]int{}
			for seed := *first; seed < *first+uint64(*rounds); seed++ {
				c := Random(seed)
				c.Stopping, c.Runs, c.Pause, c.Own, c.Holds, c.Until, c.Late = stops["after 30 s"], runs, pause, own, holds, 1000*day, int(seed%4)
				o := Run(c, s)
				ever[o.MostEver()]++
				if !o.Ended {
					t.Errorf("%s, %s, seed %d: after %s it goes on, one was preempted %d times", name, life, seed, o.After, o.MostEver())
				}
				if job, by := o.twice(holds + own); job != "" {
					t.Errorf("%s, %s, seed %d: %s was preempted by %s again after it had waited for it", name, life, seed, job, by)
				}
			}
			t.Logf("%s, %s: clusters by their highest number of preemptions of a job: %v", name, life, ever)
		}
	}
}

// twice is a job that another has preempted twice although it should have waited for the other.
func (o Outcome) twice(holds int) (job, by string) {
	for job, all := range o.By {
		for i := holds - 1; i < len(all); i++ {
			if slices.Contains(all[i+1:], all[i]) {
				return job, all[i]
			}
		}
	}
	return "", ""
}

// TestMeasurePause prints what a pause gives and costs in a day.
func TestMeasurePause(t *testing.T) {
	if *measure == 0 {
		t.Skip("for the price of a pause, set -preemption.measure")
	}
	pause, holds := pauses(t)
	for name, settings := range releases {
		s := settings(t)
		for life, runs := range lives {
			for _, how := range []struct {
				name  string
				pause func(int) time.Duration
				holds int
			}{{"no pause", nil, 0}, {"a pause", pause, 0}, {"a pause that holds", pause, holds}} {
				fmt.Printf("%s, %s, %s: %s\n", name, life, how.name, price(s, func(c *Cluster) {
					c.Stopping, c.Runs, c.Pause, c.Own, c.Holds, c.Until = stops["after 30 s"], runs, how.pause, own, how.holds, 10*day
				}))
			}
		}
	}
}

func price(s Settings, change func(*Cluster)) string {
	var lost, paused, after time.Duration
	turns, pausedIn, most := 0, 0, 0
	var open []uint64
	for seed := *first; seed < *first+uint64(*measure); seed++ {
		c := Random(seed)
		change(&c)
		o := Run(c, s)
		lost, paused, most, after = lost+o.Lost, paused+o.Paused, max(most, o.MostEver()), after+o.After
		if o.MostEver() > 3 {
			turns++
		}
		if o.Paused > 0 {
			pausedIn++
		}
		if !o.Ended {
			open = append(open, seed)
		}
	}
	return fmt.Sprintf("in %d of %d clusters a job was preempted more than 3 times, at most %d; %d had not ended %v; %.0f GPU-hours lost, %.0f hours paused in %d clusters; mean time %.1f h",
		turns, *measure, most, len(open), open, lost.Hours(), paused.Hours(), pausedIn, after.Hours()/float64(*measure))
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
	text, err := os.ReadFile("../../../../../docs/quota.md")
	if err != nil {
		t.Fatal(err)
	}
	guide := strings.Join(strings.Fields(string(text)), " ")
	for within, sentence := range map[queue.PreemptionPolicy]string{
		queue.PreemptionPolicyLowerPriority:             "in a simulation, %v hours, when small jobs came for three days",
		queue.PreemptionPolicyLowerOrNewerEqualPriority: "the same big job waited %v hours",
	} {
		s := ours(t)
		s.Preemption.WithinClusterQueue = within
		o := run(stream(), s)
		waited, stopped := o.Started["big"]-5*30*time.Minute, strings.Count(strings.Join(o.Log, "\n"), "is preempted")
		t.Logf("%s: the big job waits %s, %d small ones are preempted", within, waited, stopped)
		if says := fmt.Sprintf(sentence, math.Round(waited.Hours()*10)/10); o.Started["big"] == 0 || !strings.Contains(guide, says) {
			t.Errorf("%s: docs/quota.md does not say %q", within, says)
		}
	}
}
