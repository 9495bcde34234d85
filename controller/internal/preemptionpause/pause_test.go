// SPDX-License-Identifier: Apache-2.0

package preemptionpause

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/mlbatch/mlbatch/test/golden"
)

// The simulation of Kueue's scheduler in tools/artifacts/components/kueue/preemption reads this file.
func TestHowLongAPauseLasts(t *testing.T) {
	var lines bytes.Buffer
	for n := range int32(11) {
		holds := ""
		if Default().Holds(n) {
			holds = " held"
		}
		fmt.Fprintf(&lines, "%d %s%s\n", n, Default().Lasts(n), holds)
	}
	golden.Compare(t, "testdata/pauses.golden", lines.Bytes())
}

// What docs/quota.md tells those who wait.
func TestThePageHasTheFigures(t *testing.T) {
	text, err := os.ReadFile("../../../docs/quota.md")
	if err != nil {
		t.Fatal(err)
	}
	page, p := strings.Join(strings.Fields(string(text)), " "), Default()
	for figure, is := range map[string]bool{
		"Work that was preempted for the third time is queued again a minute later, then two, four, and so on, at most an hour.": p.Lasts(2) == 0 &&
			p.Lasts(3) == time.Minute && p.Lasts(4) == 2*time.Minute && p.Lasts(5) == 4*time.Minute && p.Longest == time.Hour,
		"From the ninth preemption on, work also waits until the job that preempted it has ended": !p.Holds(8) && p.Holds(9),
		"but at most a week.": MostHeld == 7*24*time.Hour,
	} {
		if !is || !strings.Contains(page, figure) {
			t.Errorf("docs/quota.md does not say %q, or it is wrong", figure)
		}
	}
}

func TestWhoPreemptedIt(t *testing.T) {
	for message, want := range map[string]types.UID{
		"Preempted to accommodate a workload (UID: 5b60-1, JobUID: 1797) due to reclamation within the cohort": "5b60-1",
		"Preempted to accommodate a workload (UID: UNKNOWN, JobUID: UNKNOWN) due to prioritization":            "UNKNOWN",
		"Preempted (UID: 5b60-1": "",
		"Preempted":              "",
	} {
		w := preempted(1, byAnother)
		w.Status.Conditions[len(w.Status.Conditions)-1].Message = message
		if got := Preemptor(w); got != want {
			t.Errorf("%q: %q", message, got)
		}
	}
	if got := Preemptor(preempted(1, nil)); got != "" {
		t.Errorf("without the condition: %q", got)
	}
}

func TestNoNumberOverflows(t *testing.T) {
	for p, want := range map[Pause]time.Duration{
		Default(): time.Hour,
		{After: 1, First: time.Second, Longest: 1}:         1,
		{After: 0, First: time.Minute, Longest: time.Hour}: 0,
	} {
		if got := p.Lasts(1 << 30); got != want {
			t.Errorf("%+v: %s", p, got)
		}
	}
}

var begin = time.Unix(1_800_000_000, 0)

// preempted is a Workload that was preempted at begin.
func preempted(times int32, change func(*kueue.Workload)) *kueue.Workload {
	w := &kueue.Workload{}
	w.Status.SchedulingStats = &kueue.SchedulingStats{Evictions: []kueue.WorkloadSchedulingStatsEviction{
		{Reason: kueue.WorkloadEvictedByPodsReadyTimeout, Count: 7}, {Reason: kueue.WorkloadEvictedByPreemption, Count: times},
	}}
	w.Status.Conditions = []metav1.Condition{
		condition(kueue.WorkloadEvicted, metav1.ConditionTrue, kueue.WorkloadEvictedByPreemption, begin),
		condition(kueue.WorkloadRequeued, metav1.ConditionTrue, kueue.WorkloadEvictedByPreemption, begin),
	}
	if change != nil {
		change(w)
	}
	return w
}

func condition(kind string, status metav1.ConditionStatus, reason string, since time.Time) metav1.Condition {
	return metav1.Condition{Type: kind, Status: status, Reason: reason, LastTransitionTime: metav1.NewTime(since)}
}

// waits has a requeueAt, from us or from Kueue.
func waits(until time.Duration, manager string) func(*kueue.Workload) {
	return func(w *kueue.Workload) {
		at := metav1.NewTime(begin.Add(until))
		w.Status.RequeueState = &kueue.RequeueState{RequeueAt: &at}
		w.ManagedFields = append(w.ManagedFields, metav1.ManagedFieldsEntry{
			Manager: manager, Subresource: "status",
			FieldsV1: metav1.NewFieldsV1(`{"f:status":{"f:requeueState":{"f:requeueAt":{}}}}`),
		})
	}
}

func both(first, second func(*kueue.Workload)) func(*kueue.Workload) {
	return func(w *kueue.Workload) { first(w); second(w) }
}

func evicted(status metav1.ConditionStatus, reason string) func(*kueue.Workload) {
	return func(w *kueue.Workload) {
		w.Status.Conditions[0] = condition(kueue.WorkloadEvicted, status, reason, begin)
	}
}

func deactivate(w *kueue.Workload) { w.Spec.Active = ptr.To(false) }

// byAnother is as Kueue writes it; the simulation of its scheduler has the test that it does.
func byAnother(w *kueue.Workload) {
	c := condition(kueue.WorkloadPreempted, metav1.ConditionTrue, kueue.InCohortReclamationReason, begin)
	c.Message = "Preempted to accommodate a workload (UID: runs, JobUID: 17) due to reclamation within the cohort; preemptor path: /red; preemptee path: /blue"
	w.Status.Conditions = append(w.Status.Conditions, c)
}

func byItsOwnTeam(w *kueue.Workload) {
	w.Status.Conditions[len(w.Status.Conditions)-1].Reason = kueue.InClusterQueueReason
}

func byWhatHasEnded(w *kueue.Workload) {
	byAnother(w)
	c := &w.Status.Conditions[len(w.Status.Conditions)-1]
	c.Message = strings.ReplaceAll(c.Message, "runs", "ended")
}

func unfinished(uid types.UID) bool { return uid == "runs" }

const kueues = "kueue-admission"

var (
	nothing = Decision{}
	end     = Decision{Action: End}
)

func beginUntil(d time.Duration) Decision {
	return Decision{Action: Begin, Until: begin.Add(d), Look: begin.Add(d)}
}

func heldUntil(look time.Duration) Decision {
	return Decision{Action: Begin, Until: begin.Add(MostHeld), Look: begin.Add(look), Held: true}
}

func lookAfter(d time.Duration) Decision { return Decision{Look: begin.Add(d)} }

func TestDecide(t *testing.T) {
	for name, row := range map[string]struct {
		times  int32
		change func(*kueue.Workload)
		after  time.Duration
		want   Decision
	}{
		"two preemptions are normal":                       {2, nil, 0, nothing},
		"the third begins a pause":                         {3, nil, 5 * time.Second, beginUntil(time.Minute)},
		"the fourth a longer one":                          {4, nil, 0, beginUntil(2 * time.Minute)},
		"whoever comes late writes the same":               {4, nil, 100 * time.Second, beginUntil(2 * time.Minute)},
		"who comes too late writes nothing":                {4, nil, 3 * time.Minute, nothing},
		"a pause that is written is waited for":            {3, waits(time.Minute, FieldOwner), 10 * time.Second, lookAfter(time.Minute)},
		"and ended":                                        {3, waits(time.Minute, FieldOwner), time.Minute, end},
		"with other settings it changes":                   {3, waits(time.Hour, FieldOwner), 0, beginUntil(time.Minute)},
		"a longer pause of Kueue is not shortened":         {3, waits(time.Hour, kueues), 0, lookAfter(time.Minute)},
		"nor removed":                                      {3, waits(time.Hour, kueues), 2 * time.Hour, nothing},
		"a shorter one is prolonged":                       {3, waits(time.Second, kueues), 0, beginUntil(time.Minute)},
		"Kueue's own pause after a time-out stays":         {9, both(waits(time.Second, kueues), evicted("True", kueue.WorkloadEvictedByPodsReadyTimeout)), 0, nothing},
		"an eviction for another reason begins none":       {9, evicted("True", kueue.WorkloadEvictedDueToNodeFailures), 0, nothing},
		"what runs has no pause":                           {9, evicted("False", "QuotaReserved"), 0, nothing},
		"and loses one that is left":                       {9, both(waits(time.Hour, FieldOwner), evicted("False", "QuotaReserved")), 0, end},
		"what is deactivated is left alone":                {9, deactivate, 0, nothing},
		"and loses a pause, which Kueue does not end then": {9, both(waits(time.Hour, FieldOwner), deactivate), 0, end},
		"what is finished is left alone":                   {9, func(w *kueue.Workload) { w.Status.Conditions[1].Type = kueue.WorkloadFinished }, 0, nothing},
		"what is being deleted is left alone":              {9, func(w *kueue.Workload) { w.DeletionTimestamp = ptr.To(metav1.NewTime(begin)) }, 0, nothing},
		"what takes turns waits for the other":             {9, byAnother, 0, heldUntil(time.Hour)},
		"not before":                                       {8, byAnother, 0, beginUntil(32 * time.Minute)},
		"who comes late writes the same then, too":         {9, byAnother, 2 * time.Hour, heldUntil(2*time.Hour + time.Minute)},
		"it looks again and again":                         {9, both(byAnother, waits(MostHeld, FieldOwner)), 2 * time.Hour, lookAfter(2*time.Hour + time.Minute)},
		"it waits at most a week":                          {9, both(byAnother, waits(MostHeld, FieldOwner)), MostHeld, end},
		"if the other has ended, only for the pause":       {9, byWhatHasEnded, 0, beginUntil(time.Hour)},
		"if the other ends, the pause is shorter":          {9, both(byWhatHasEnded, waits(MostHeld, FieldOwner)), 0, beginUntil(time.Hour)},
		"or over": {9, both(byWhatHasEnded, waits(MostHeld, FieldOwner)), 2 * time.Hour, end},
		"what its own team preempted waits later": {5, both(byAnother, byItsOwnTeam), 0, nothing},
		"and less":                                          {11, both(byAnother, byItsOwnTeam), 0, beginUntil(32 * time.Minute)},
		"but also for the other":                            {12, both(byAnother, byItsOwnTeam), 0, heldUntil(time.Hour)},
		"what is deactivated waits for nobody":              {9, both(byAnother, deactivate), 0, nothing},
		"what was never preempted has no statistics at all": {0, func(w *kueue.Workload) { w.Status.SchedulingStats = nil }, 0, nothing},
	} {
		t.Run(name, func(t *testing.T) {
			w := preempted(row.times, row.change)
			if diff := cmp.Diff(row.want, Default().Decide(w, begin.Add(row.after), unfinished)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			if diff := cmp.Diff(row.want, Default().Decide(Slim(w), begin.Add(row.after), unfinished)); diff != "" {
				t.Errorf("from the cache (-want +got)\n%s", diff)
			}
		})
	}
}

func TestAWorkloadIsQueuedAgain(t *testing.T) {
	now := begin.Add(time.Minute)
	over := condition(kueue.WorkloadRequeued, metav1.ConditionTrue, kueue.WorkloadBackoffFinished, now)
	over.Message = "The pause after repeated preemptions is over"
	for name, row := range map[string]struct {
		change func(*kueue.Workload)
		want   metav1.Condition
	}{
		"Kueue has to be told":                                {func(*kueue.Workload) {}, over},
		"also if whoever made room for others did not say so": {func(w *kueue.Workload) { w.Status.Conditions = w.Status.Conditions[:1] }, over},
		"but not while its queue is stopped": {func(w *kueue.Workload) { w.Status.Conditions[1].Status = metav1.ConditionFalse },
			condition(kueue.WorkloadRequeued, metav1.ConditionFalse, kueue.WorkloadEvictedByPreemption, begin)},
		"nor if it has quota": {func(w *kueue.Workload) {
			w.Status.Conditions = append(w.Status.Conditions, condition(kueue.WorkloadQuotaReserved, metav1.ConditionTrue, "QuotaReserved", begin))
		}, condition(kueue.WorkloadRequeued, metav1.ConditionTrue, kueue.WorkloadEvictedByPreemption, begin)},
	} {
		t.Run(name, func(t *testing.T) {
			w := preempted(3, both(waits(time.Minute, FieldOwner), row.change))
			end.Apply(w, now)
			if diff := cmp.Diff(&row.want, meta.FindStatusCondition(w.Status.Conditions, kueue.WorkloadRequeued)); diff != "" || w.Status.RequeueState != nil {
				t.Errorf("%+v (-want +got)\n%s", w.Status.RequeueState, diff)
			}
		})
	}
	w := preempted(3, waits(time.Minute, FieldOwner))
	w.Status.RequeueState.Count = ptr.To[int32](2)
	end.Apply(w, now)
	if diff := cmp.Diff(&kueue.RequeueState{Count: ptr.To[int32](2)}, w.Status.RequeueState); diff != "" {
		t.Errorf("Kueue's own count (-want +got)\n%s", diff)
	}
}
