// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package e2e_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"sigs.k8s.io/e2e-framework/pkg/envconf"
	"sigs.k8s.io/e2e-framework/pkg/features"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	workload "github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/test/e2e/needs"
)

// Two teams have 8 GPUs each, a big job that borrows, and a small one within their own quota. The
// small ones take back what was borrowed, and then all is calm: no job stops another again. With
// withinClusterQueue: LowerOrNewerEqualPriority, the same jobs stop each other without end; see
// tools/artifacts/components/kueue/preemption.
func TestTeamsDoNotTakeTurnsForEver(t *testing.T) {
	testenv.Test(t, features.New("turns").Assess("preemption ends", func(ctx context.Context, t *testing.T, cfg *envconf.Config) context.Context {
		red, blue := tell(t, cfg, "e2e-borrower", "bert", needs.SimulatedNodes), tell(t, cfg, "e2e-lender", "lena", needs.SimulatedNodes)
		job := func(name string, pods int32, gpus string) *workload.AppWrapper {
			return wrapped(name, gpuJobs(name, pods, gpus), nil)
		}
		kept, redBig, blueBig := job("kept", 1, "2"), job("red-big", 3, "4"), job("blue-big", 3, "4")
		blueNew, redNew := job("blue-new", 1, "4"), job("red-new", 1, "4")

		blue.create(ctx, kept)
		blue.untilPhase(ctx, kept, workload.AppWrapperRunning)
		red.create(ctx, redBig)
		red.untilPhase(ctx, redBig, workload.AppWrapperRunning)
		blue.create(ctx, blueBig)
		blue.untilWorkload(ctx, blueBig, kueue.WorkloadQuotaReserved, "False", "Pending")
		blue.untilLaterThan(ctx, blueBig)
		blue.create(ctx, blueNew)
		red.untilWorkload(ctx, redBig, kueue.WorkloadPreempted, "True", kueue.InCohortReclamationReason)
		blue.untilPhase(ctx, blueNew, workload.AppWrapperRunning)
		red.create(ctx, redNew)
		red.untilPhase(ctx, redNew, workload.AppWrapperRunning)

		// Nothing announces that no preemption will come, so we watch for a while. With the old
		// setting, each of these jobs was preempted every 7 seconds: 10 seconds would show it.
		for range 10 {
			time.Sleep(time.Second)
			red.mustHaveBeenPreempted(ctx, map[*workload.AppWrapper]int32{redBig: 1, redNew: 0})
			blue.mustHaveBeenPreempted(ctx, map[*workload.AppWrapper]int32{blueBig: 0, blueNew: 0, kept: 0})
		}
		return ctx
	}).Feature())
}

// As above, but the big jobs are urgent, so that they preempt the small ones of their team: no setting
// of Kueue ends that. After its third preemption a big one waits for a minute. Meanwhile the small ones
// run within their teams' own quota, and nothing happens when the big ones are queued again.
func TestUrgentJobsStopTakingTurns(t *testing.T) {
	testenv.Test(t, features.New("turns").Assess("a pause ends them", func(ctx context.Context, t *testing.T, cfg *envconf.Config) context.Context {
		red, blue := tell(t, cfg, "e2e-borrower", "bert", needs.SimulatedNodes), tell(t, cfg, "e2e-lender", "lena", needs.SimulatedNodes)
		const urgent, normal = "high-priority", "default-priority"
		kept, redBig, blueBig := ranked("kept", 1, "2", urgent), ranked("red-big", 3, "4", urgent), ranked("blue-big", 3, "4", urgent)
		blueNew, redNew := ranked("blue-new", 1, "4", normal), ranked("red-new", 1, "4", normal)

		blue.create(ctx, kept)
		blue.untilPhase(ctx, kept, workload.AppWrapperRunning)
		red.create(ctx, redBig)
		red.untilPhase(ctx, redBig, workload.AppWrapperRunning)
		blue.create(ctx, blueBig)
		blue.untilWorkload(ctx, blueBig, kueue.WorkloadQuotaReserved, "False", "Pending")
		blue.create(ctx, blueNew)
		red.untilWorkload(ctx, redBig, kueue.WorkloadPreempted, "True", kueue.InCohortReclamationReason)
		red.create(ctx, redNew)

		look := func(ctx context.Context) (paused int, most int32, err error) {
			reds, one, err := red.turns(ctx, redBig, redNew)
			if err != nil {
				return 0, 0, err
			}
			blues, other, err := blue.turns(ctx, kept, blueBig, blueNew)
			return reds + blues, max(one, other), err
		}
		red.until(ctx, "a big job waits for its pause to end", func(ctx context.Context) (string, error) {
			paused, most, err := look(ctx)
			if err == nil && paused == 0 {
				return fmt.Sprintf("none does; one was preempted %d times", most), nil
			}
			return "", err
		})
		red.until(ctx, "no job waits any more", func(ctx context.Context) (string, error) {
			paused, most, err := look(ctx)
			if err == nil && paused > 0 {
				return fmt.Sprintf("%d do; one was preempted %d times", paused, most), nil
			}
			return "", err
		})
		_, before, err := look(ctx)
		if before < 3 || before > 4 || err != nil {
			t.Errorf("a job was preempted %d times (%v)", before, err)
		}
		time.Sleep(20 * time.Second) // nothing announces that no preemption will come; three turns would fit
		if _, after, err := look(ctx); after != before || err != nil {
			t.Errorf("after the pause, a job was preempted %d times and not %d (%v)", after, before, err)
		}
		red.untilPhase(ctx, redNew, workload.AppWrapperRunning)
		blue.untilPhase(ctx, blueNew, workload.AppWrapperRunning)
		return ctx
	}).Feature())
}

// ranked is an AppWrapper whose pods have a priority. It is no bare Job: of a job that Kueue stops
// within a second of its start, before its operator has reported a pod, pods run for a moment without
// quota (docs/architecture.md).
func ranked(name string, pods int32, gpus, priority string) *workload.AppWrapper {
	job := gpuJobs(name, pods, gpus)
	job.Spec.Template.Spec.PriorityClassName = priority
	return wrapped(name, job, nil)
}

// turns returns how many of a team's jobs wait for their pause to end, and the highest number of
// preemptions of one.
func (s *story) turns(ctx context.Context, jobs ...*workload.AppWrapper) (paused int, most int32, err error) {
	for _, job := range jobs {
		w, err := s.workloadOf(ctx, job)
		if err != nil {
			return 0, 0, err
		}
		if w == nil {
			return 0, 0, fmt.Errorf("%s has no Workload", job.GetName())
		}
		if w.Status.RequeueState != nil && w.Status.RequeueState.RequeueAt != nil {
			paused++
		}
		most = max(most, preemptions(w))
	}
	return paused, most, nil
}

// mustHaveBeenPreempted compares how often each AppWrapper's Workload was preempted.
func (s *story) mustHaveBeenPreempted(ctx context.Context, times map[*workload.AppWrapper]int32) {
	s.t.Helper()
	for aw, want := range times {
		w, err := s.workloadOf(ctx, aw)
		if err != nil || w == nil {
			s.t.Fatalf("%s has no Workload (%v)", aw.Name, err)
		}
		if got := preemptions(w); got != want {
			s.t.Fatalf("%s was preempted %d times, not %d: %v", aw.Name, got, want, w.Status.Conditions)
		}
	}
}

func preemptions(w *kueue.Workload) int32 {
	if w.Status.SchedulingStats == nil {
		return 0
	}
	for _, e := range w.Status.SchedulingStats.Evictions {
		if e.Reason == kueue.WorkloadEvictedByPreemption {
			return e.Count
		}
	}
	return 0
}
