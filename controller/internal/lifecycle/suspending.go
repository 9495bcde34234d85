// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/ledger"
)

func (v *view) suspend() Decision {
	from, lost := v.status.Phase, ledger.Lost(v.Status, v.Policy.LastCheckpoint, v.now)
	v.beginRemoval()
	v.requeue()
	return v.move(v1beta2.AppWrapperSuspending).announcing(suspendingEvent(from, lost, v.isTrue(v1beta2.Idle)))
}

// suspending completes what it began, even if spec.suspend is false again. But then there is quota
// again, which is not held for what finalizers keep.
func suspending(v *view) Decision {
	if v.releasable() {
		v.clear(v1beta2.QuotaReserved, string(v1beta2.AppWrapperSuspending), onlyKept)
	}
	d, gone := v.tearDown()
	if !gone && !v.Suspend {
		d = v.orGiveUp(d, v1beta2.QuotaReserved)
	}
	if !gone {
		return d
	}
	const reason = string(v1beta2.AppWrapperSuspended)
	v.set(v1beta2.ResourcesDeployed, metav1.ConditionFalse, reason, "spec.suspend is true")
	v.set(v1beta2.QuotaReserved, metav1.ConditionFalse, reason, "spec.suspend is true")
	v.clear(v1beta2.PodsReady, reason, "")
	v.set(v1beta2.Unhealthy, metav1.ConditionFalse, reason, "")
	v.requeue()
	return v.move(v1beta2.AppWrapperSuspended).because(CauseEverythingGone)
}
