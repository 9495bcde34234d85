// SPDX-License-Identifier: Apache-2.0

// Package deactivation answers how a Workload says that its quota is to go back, and when that has been
// done. It is pure. Kueue deactivates a Workload with the condition DeactivationTarget, takes its quota back, and
// then removes the condition as far as it is its own; ours stays, and would deactivate the Workload again as soon as a
// user activates it.
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
// back, and somebody else may have requested the same.
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

// Done reports whether Kueue has done what our condition requests, so that it has to go.
func Done(w *kueue.Workload) bool {
	return Requested(w) && inactive(w) && meta.IsStatusConditionTrue(w.Status.Conditions, kueue.WorkloadEvicted)
}

// Forget removes our condition.
func Forget(w *kueue.Workload) {
	if Requested(w) {
		meta.RemoveStatusCondition(&w.Status.Conditions, kueue.WorkloadDeactivationTarget)
	}
}

func inactive(w *kueue.Workload) bool { return w.Spec.Active != nil && !*w.Spec.Active }
