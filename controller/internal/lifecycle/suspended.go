// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/quotareason"
)

// suspended waits for quota.
func suspended(v *view) Decision {
	if d, none := v.removeStrays(); !none {
		return d
	}
	if v.Suspend {
		return v.wait()
	}
	if !v.admittedAsAWhole() {
		v.set(v1beta2.QuotaReserved, metav1.ConditionFalse, string(v1beta2.AppWrapperSuspended),
			"spec.suspend is false, but not every pod set of status.componentStatus has its podSetInfo: waiting for quota for all of them")
		return v.stay()
	}
	return v.begin()
}

// begin begins the first attempt since there is quota. The finalizer comes first, so that a deletion
// leaves nothing behind. The webhook has added it when suspend became false, if it could.
func (v *view) begin() Decision {
	if !v.HasFinalizer {
		return Decision{Status: v.Status, Effect: AddFinalizer}
	}
	v.set(v1beta2.QuotaReserved, metav1.ConditionTrue, v1beta2.ReasonAdmitted, "spec.suspend is false")
	return v.deploy("the components are being created").because(CauseQuotaGiven)
}

// unsaid is how long an AppWrapper waits before its status says why. Most are admitted before, and need
// no write.
const unsaid = 10 * time.Second

// wait finds out whether the components can be created at all, and says why there is no quota.
func (v *view) wait() Decision {
	v.noticeDeactivation()
	d, applies, due := v.tryCreation()
	if applies {
		return d
	}
	d = v.sayWhyItWaits()
	if wait := due.Sub(v.now); wait > 0 && (d.Requeue == 0 || wait < d.Requeue) {
		d.Requeue = wait
	}
	return d
}

// sayWhyItWaits tells users why there is no quota, once for each reason.
func (v *view) sayWhyItWaits() Decision {
	if v.Waits == "" || v.isTrue(v1beta2.QuotaReserved) {
		return v.stay()
	}
	if began := v.status.PhaseTransitionTime; began != nil && v.now.Before(began.Add(unsaid)) {
		return v.stay().requeueAt(began.Add(unsaid), v.now)
	}
	v.set(v1beta2.QuotaReserved, metav1.ConditionFalse, string(v.Waits), quotareason.Sentence(v.Waits))
	return v.stay()
}

// admittedAsAWhole: the AppWrapper was unsuspended for all its pod sets. Kueue writes a
// podSetInfo for each pod set that it admits; without Kueue there is none. Before Kueue sees
// our status, it counts only the pod sets of kinds that it knows, and admits only those. It
// evicts the workload when it sees the others.
func (v *view) admittedAsAWhole() bool {
	informed, whole := false, true
	for i, c := range v.Components {
		informed = informed || c.PodSetInfos > 0
		whole = whole && c.PodSetInfos == len(v.status.ComponentStatus[i].PodSets)
	}
	return whole || !informed
}
