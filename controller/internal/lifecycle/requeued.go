// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/quotareason"
)

// requeue says, in the writes of a suspension, why the quota goes back. If nobody knew at the beginning, because the
// watch of Workloads was late, it says so at the end. A preemption is counted when it is known.
func (v *view) requeue() {
	if v.Kueue.Deactivated != "" {
		v.noticeDeactivation()
		return
	}
	known := v.isTrue(v1beta2.Requeued) && !v.hasReason(v1beta2.Requeued, quotareason.Suspended)
	if known || v.isTrue(v1beta2.Deactivated) {
		return
	}
	reason := v.Kueue.Evicted
	if reason == "" {
		reason = quotareason.Suspended
	}
	v.set(v1beta2.Requeued, metav1.ConditionTrue, reason, quotareason.Eviction(reason))
	if reason == string(quotareason.Preempted) {
		v.status.Preemptions++
	}
}

// noticeDeactivation says that nobody starts the work any more, or that it waits again. Before Workloads are watched,
// what was said stays.
func (v *view) noticeDeactivation() {
	if v.Kueue.Deactivated != "" {
		reason, message := quotareason.Deactivation(v.Kueue.Deactivated)
		v.set(v1beta2.Deactivated, metav1.ConditionTrue, reason, message)
		v.clear(v1beta2.Requeued, reason, "")
		return
	}
	if !v.Kueue.Known || !v.isTrue(v1beta2.Deactivated) {
		return
	}
	v.clear(v1beta2.Deactivated, quotareason.Reactivated, "")
	if v.hasRun() {
		v.set(v1beta2.Requeued, metav1.ConditionTrue, quotareason.Reactivated, quotareason.Eviction(quotareason.Reactivated))
	}
}

// hasRun: an attempt has begun at some time.
func (v *view) hasRun() bool { return !v.transitionTime(v1beta2.ResourcesDeployed).IsZero() }
