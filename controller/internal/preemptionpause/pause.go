// SPDX-License-Identifier: Apache-2.0

// Package preemptionpause answers how long a Workload waits after a preemption. It decides from
// the Workload and the time alone, so a restart of the controller changes nothing.
package preemptionpause

import (
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// FieldOwner is who writes a pause, in the managed fields of a Workload.
const FieldOwner = "mlbatch-preemption-pause"

// Pause is how long work waits that is preempted again and again: First after the preemption
// number After, and then twice as long each time, up to Longest. From then on it also waits until
// the work that preempted it has ended, so that each can do so only once. With After 0, it never waits.
type Pause struct {
	After          int32
	First, Longest time.Duration
}

// Default is for installations that say nothing.
func Default() Pause {
	return Pause{After: 3, First: time.Minute, Longest: time.Hour}
}

// Lasts is how long the pause after the nth preemption is.
func (p Pause) Lasts(n int32) time.Duration {
	if p.After <= 0 || n < p.After {
		return 0
	}
	d := p.First
	for range n - p.After {
		if d >= p.Longest {
			break
		}
		d *= 2
	}
	return min(d, p.Longest)
}

// MostHeld is how long work waits at most for what preempted it, which may have no end.
const MostHeld = 7 * 24 * time.Hour

// again is how often to look whether the work that preempted another has ended.
const again = time.Minute

// Holds reports whether work that was preempted n times waits for what preempted it.
func (p Pause) Holds(n int32) bool { return p.After > 0 && n >= p.After && p.Lasts(n) >= p.Longest }

// Action is what to do with a Workload.
type Action string

// What can be done.
const (
	Nothing Action = ""
	// Begin the pause, or change its end.
	Begin Action = "Begin"
	// End it: the Workload is queued again.
	End Action = "End"
)

// Decision is what to do, and when to decide again.
type Decision struct {
	Action
	// Until is when the pause ends that begins.
	Until time.Time
	// Held is whether it ends earlier if the work that preempted this one has ended.
	Held bool
	// Look is zero if only a change of the Workload matters.
	Look time.Time
}

// Decide says what to do with a Workload. Kueue has pauses of its own in the same field, after its
// timeout for pods that are not ready and for admission checks. They are not shortened or removed.
// Whether a Workload may still run or wait for that says unfinished.
func (p Pause) Decide(w *kueue.Workload, now time.Time, unfinished func(types.UID) bool) Decision {
	d := p.wait(w, now, unfinished)
	set, ours := requeueAt(w)
	if d.Until.After(now) {
		if !set.Equal(d.Until) && (ours || set.Before(d.Until)) {
			d.Action = Begin
			return d
		}
		return Decision{Look: d.Look}
	}
	if ours {
		return Decision{Action: End}
	}
	return Decision{}
}

// wait is until when a Workload waits.
func (p Pause) wait(w *kueue.Workload, now time.Time, unfinished func(types.UID) bool) Decision {
	until := p.until(w)
	if until.IsZero() || !p.Holds(p.counted(w)) || !unfinished(Preemptor(w)) {
		return Decision{Until: until, Look: until}
	}
	d := Decision{Until: until.Add(MostHeld - p.Longest), Look: until, Held: true}
	if soon := now.Add(again); soon.After(until) {
		d.Look = soon
	}
	return d
}

// counted is how many preemptions count for the pause: fewer if more important work of the same
// ClusterQueue preempted it last. So those that borrowed wait first. Meanwhile their victims start
// within their team's own quota, and the turns end; if all waited alike, all would return at once.
func (p Pause) counted(w *kueue.Workload) int32 {
	n := Preemptions(w)
	c := meta.FindStatusCondition(w.Status.Conditions, kueue.WorkloadPreempted)
	if c != nil && c.Reason == kueue.InClusterQueueReason {
		n -= p.After
	}
	return n
}

// until is when a preempted Workload that has not started again may be queued. It is zero for
// others. Kueue sets the condition Evicted when it takes the quota, and resets it when it gives
// quota again. The time has whole seconds, as in the API.
func (p Pause) until(w *kueue.Workload) time.Time {
	evicted := meta.FindStatusCondition(w.Status.Conditions, kueue.WorkloadEvicted)
	if evicted == nil || evicted.Status != metav1.ConditionTrue || evicted.Reason != kueue.WorkloadEvictedByPreemption {
		return time.Time{}
	}
	if !Unfinished(w) || !w.DeletionTimestamp.IsZero() {
		return time.Time{}
	}
	pause := p.Lasts(p.counted(w))
	if pause == 0 {
		return time.Time{}
	}
	return evicted.LastTransitionTime.Add(pause).Truncate(time.Second)
}

// Preemptions is how often Kueue preempted a Workload, for whatever reason. It counts evictions
// because of pods that are not ready, nodes, admission checks and stopped queues by themselves.
func Preemptions(w *kueue.Workload) int32 {
	if w.Status.SchedulingStats == nil {
		return 0
	}
	var n int32
	for _, e := range w.Status.SchedulingStats.Evictions {
		if e.Reason == kueue.WorkloadEvictedByPreemption {
			n += e.Count
		}
	}
	return n
}

// Preemptor is the UID of the Workload for which another was preempted last. Only Kueue's message
// has it.
func Preemptor(w *kueue.Workload) types.UID {
	c := meta.FindStatusCondition(w.Status.Conditions, kueue.WorkloadPreempted)
	if c == nil {
		return ""
	}
	_, rest, _ := strings.Cut(c.Message, "(UID: ")
	uid, _, found := strings.Cut(rest, ",")
	if !found {
		return ""
	}
	return types.UID(uid)
}

// Unfinished reports whether a Workload runs or may do so without being changed.
func Unfinished(w *kueue.Workload) bool {
	return !deactivated(w) && !meta.IsStatusConditionTrue(w.Status.Conditions, kueue.WorkloadFinished)
}

func deactivated(w *kueue.Workload) bool { return w.Spec.Active != nil && !*w.Spec.Active }

// requeueAt is when Kueue may queue a Workload again, and whether that is from us.
func requeueAt(w *kueue.Workload) (at time.Time, ours bool) {
	if w.Status.RequeueState == nil || w.Status.RequeueState.RequeueAt == nil {
		return time.Time{}, false
	}
	for _, entry := range w.ManagedFields {
		if entry.Manager == FieldOwner && entry.FieldsV1 != nil && strings.Contains(entry.FieldsV1.GetRawString(), `"f:requeueAt"`) {
			ours = true
		}
	}
	return w.Status.RequeueState.RequeueAt.Time, ours
}

// Apply does to a Workload what was decided.
func (d Decision) Apply(w *kueue.Workload, now time.Time) {
	switch d.Action {
	case Begin:
		if w.Status.RequeueState == nil {
			w.Status.RequeueState = &kueue.RequeueState{}
		}
		at := metav1.NewTime(d.Until)
		w.Status.RequeueState.RequeueAt = &at
	case End:
		w.Status.RequeueState.RequeueAt = nil
		if w.Status.RequeueState.Count == nil {
			w.Status.RequeueState = nil
		}
		queueAgain(w, now)
	}
}

// queueAgain says that the pause is over, in the words of Kueue. Without a change of the condition
// Requeued, Kueue leaves a Workload that it knows to be inadmissible aside until something else
// changes in the cohort. If the condition is False, a queue is stopped, and Kueue sets it later. It is
// missing if another program than Kueue has ended the job.
func queueAgain(w *kueue.Workload, now time.Time) {
	requeued := metav1.Condition{Type: kueue.WorkloadRequeued, Status: metav1.ConditionTrue}
	if known := meta.FindStatusCondition(w.Status.Conditions, kueue.WorkloadRequeued); known != nil {
		requeued = *known
	}
	if requeued.Status != metav1.ConditionTrue || meta.IsStatusConditionTrue(w.Status.Conditions, kueue.WorkloadQuotaReserved) {
		return
	}
	requeued.Reason, requeued.Message = kueue.WorkloadBackoffFinished, "The pause after repeated preemptions is over"
	requeued.LastTransitionTime = metav1.NewTime(now)
	w.Status.Conditions = slices.DeleteFunc(w.Status.Conditions, func(c metav1.Condition) bool { return c.Type == kueue.WorkloadRequeued })
	w.Status.Conditions = append(w.Status.Conditions, requeued)
}

// Slim leaves what Decide reads.
func Slim(w *kueue.Workload) *kueue.Workload {
	slim := &kueue.Workload{}
	slim.Name, slim.Namespace, slim.UID, slim.ResourceVersion = w.Name, w.Namespace, w.UID, w.ResourceVersion
	slim.DeletionTimestamp = w.DeletionTimestamp
	if owner := metav1.GetControllerOf(w); owner != nil {
		slim.OwnerReferences = []metav1.OwnerReference{*owner}
	}
	slim.Spec.Active = w.Spec.Active
	for _, entry := range w.ManagedFields {
		if entry.Manager == FieldOwner {
			slim.ManagedFields = append(slim.ManagedFields, entry)
		}
	}
	for _, kind := range []string{kueue.WorkloadEvicted, kueue.WorkloadFinished, kueue.WorkloadPreempted} {
		if c := meta.FindStatusCondition(w.Status.Conditions, kind); c != nil {
			kept := metav1.Condition{Type: c.Type, Status: c.Status, Reason: c.Reason, LastTransitionTime: c.LastTransitionTime}
			if kind == kueue.WorkloadPreempted {
				kept.Message = c.Message
			}
			slim.Status.Conditions = append(slim.Status.Conditions, kept)
		}
	}
	slim.Status.RequeueState, slim.Status.SchedulingStats = w.Status.RequeueState, w.Status.SchedulingStats
	return slim
}
