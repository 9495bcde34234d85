// SPDX-License-Identifier: Apache-2.0

// Package deactivation answers how a Workload says that its quota is to go back, and when that has been
// done. It is pure. Kueue deactivates a Workload with the condition DeactivationTarget, takes its quota back, and
// then removes the condition as far as it is its own; ours stays, and would deactivate the Workload again as soon as a
// user activates it. Then Kueue would not queue it, either: up to 0.19.2 at least, it does so only for what was
// deactivated for no reason.
package deactivation

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// FieldOwner is who writes the condition, in the managed fields of a Workload.
const FieldOwner = "mlbatch-idle"

// Reason is that of the condition. Kueue counts evictions by it.
const Reason = "Idle"

// Request adds the condition. It reports whether the Workload has changed: one that has no quota has none to give
// back, and another controller may have requested the same.
func Request(w *kueue.Workload, why string, now time.Time) bool {
	conditions := w.Status.Conditions
	if inactive(w) || !meta.IsStatusConditionTrue(conditions, kueue.WorkloadQuotaReserved) || meta.IsStatusConditionTrue(conditions, kueue.WorkloadDeactivationTarget) {
		return false
	}
	return meta.SetStatusCondition(&w.Status.Conditions, metav1.Condition{
		Type: kueue.WorkloadDeactivationTarget, Status: metav1.ConditionTrue, Reason: Reason, Message: why, LastTransitionTime: metav1.NewTime(now),
	})
}

// Requested reports whether a Workload has our condition.
func Requested(w *kueue.Workload) bool {
	c := meta.FindStatusCondition(w.Status.Conditions, kueue.WorkloadDeactivationTarget)
	return c != nil && c.Reason == Reason
}

// Done reports whether Kueue has done what our condition requests, so that what is left of it has to go.
func Done(w *kueue.Workload) bool {
	taken := inactive(w) && meta.IsStatusConditionTrue(w.Status.Conditions, kueue.WorkloadEvicted)
	return taken && Requested(w) || barred(w) != nil
}

// Forget removes our condition when Kueue has done what it requests, and lets a Workload that is activated again be
// queued. It reports whether the Workload has changed.
func Forget(w *kueue.Workload) bool {
	if !Done(w) {
		return false
	}
	if Requested(w) {
		meta.RemoveStatusCondition(&w.Status.Conditions, kueue.WorkloadDeactivationTarget)
	}
	if c := barred(w); c != nil {
		c.Reason = kueue.WorkloadDeactivated
	}
	return true
}

// barred is the condition with which Kueue never queues the Workload again; nil if there is none of ours.
func barred(w *kueue.Workload) *metav1.Condition {
	c := meta.FindStatusCondition(w.Status.Conditions, kueue.WorkloadRequeued)
	if c == nil || c.Status != metav1.ConditionFalse || c.Reason != kueue.WorkloadDeactivated+"DueTo"+Reason {
		return nil
	}
	return c
}

func inactive(w *kueue.Workload) bool { return w.Spec.Active != nil && !*w.Spec.Active }
