// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
)

// suspended waits for quota. The finalizer comes first, so that a deletion leaves nothing
// behind.
func suspended(v *view) Decision {
	if v.Suspend {
		return v.stay()
	}
	if !v.admittedAsAWhole() {
		v.set(v1beta2.QuotaReserved, metav1.ConditionFalse, string(v1beta2.AppWrapperSuspended),
			"spec.suspend is false, but not every pod set of status.componentStatus has its podSetInfo: waiting for quota for all of them")
		return v.stay()
	}
	if !v.HasFinalizer {
		return v.do(AddFinalizer, nil)
	}
	v.set(v1beta2.QuotaReserved, metav1.ConditionTrue, string(v1beta2.AppWrapperResuming), "spec.suspend is false")
	return v.deploy("the components are being created").because(CauseQuotaGiven)
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
