// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package e2e_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
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

// Jobs of two teams can still stop each other, if the ones that borrow are urgent: when and how often
// depends on who is faster (tools/artifacts/components/kueue/preemption has such clusters). What ends it is
// the same for any work: after its third preemption it waits for a minute, even if there is room.
func TestWorkThatIsPreemptedAgainAndAgainPauses(t *testing.T) {
	testenv.Test(t, features.New("turns").Assess("it waits after the third time", func(ctx context.Context, t *testing.T, cfg *envconf.Config) context.Context {
		s, lender := tell(t, cfg, "e2e-borrower", "bert", needs.SimulatedNodes), tell(t, cfg, "e2e-lender", "lena", needs.SimulatedNodes)
		patient := wrapped("patient", gpuJobs("patient", 3, "4"), nil) // 8 are its team's own
		s.create(ctx, patient)
		for times := range int32(3) {
			s.untilPhase(ctx, patient, workload.AppWrapperRunning)
			if w := s.mustHaveWorkload(ctx, patient); preemptions(w) != times || pauses(w) {
				t.Fatalf("it was preempted %d times, not %d, and waits: %t", preemptions(w), times, pauses(w))
			}
			name := fmt.Sprintf("owner-%d", times)
			owner := wrapped(name, gpuJobs(name, 2, "4"), nil)
			lender.create(ctx, owner)
			s.untilWorkload(ctx, patient, kueue.WorkloadPreempted, "True", kueue.InCohortReclamationReason)
			lender.untilPhase(ctx, owner, workload.AppWrapperRunning)
			lender.remove(ctx, owner)
		}
		var w *kueue.Workload
		s.until(ctx, "it pauses", func(ctx context.Context) (_ string, err error) {
			w, err = s.workloadOf(ctx, patient)
			if err == nil && !pauses(w) {
				return fmt.Sprintf("it was preempted %d times and does not", preemptions(w)), nil
			}
			return "", err
		})
		evicted := meta.FindStatusCondition(w.Status.Conditions, kueue.WorkloadEvicted)
		until := w.Status.RequeueState.RequeueAt
		if wait := until.Sub(evicted.LastTransitionTime.Time); preemptions(w) != 3 || wait != time.Minute {
			t.Errorf("after %d preemptions it waits for %s", preemptions(w), wait)
		}
		lender.untilReserved(ctx, gpu, "0")
		if !pauses(s.mustHaveWorkload(ctx, patient)) && time.Now().Before(until.Time) {
			t.Error("there is room, and it does not wait any more")
		}
		s.untilPhase(ctx, patient, workload.AppWrapperRunning)
		return ctx
	}).Feature())
}

// pauses: the work is not queued again yet.
func pauses(w *kueue.Workload) bool {
	return w.Status.RequeueState != nil && w.Status.RequeueState.RequeueAt != nil
}

func (s *story) mustHaveWorkload(ctx context.Context, aw *workload.AppWrapper) *kueue.Workload {
	s.t.Helper()
	w, err := s.workloadOf(ctx, aw)
	if err != nil || w == nil {
		s.t.Fatalf("%s has no Workload (%v)", aw.Name, err)
	}
	return w
}

// mustHaveBeenPreempted compares how often each AppWrapper's Workload was preempted.
func (s *story) mustHaveBeenPreempted(ctx context.Context, times map[*workload.AppWrapper]int32) {
	s.t.Helper()
	for aw, want := range times {
		w := s.mustHaveWorkload(ctx, aw)
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
