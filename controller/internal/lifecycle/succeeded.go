// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
)

// succeed enters Succeeded. It does not touch PodsReady: pods of a component that has
// succeeded may be gone, and with them all that was deployed.
func (v *view) succeed() Decision {
	const reason = string(v1beta2.AppWrapperSucceeded)
	v.doubtFailedNode()
	v.set(v1beta2.QuotaReserved, metav1.ConditionFalse, reason, allHasSucceeded)
	v.set(v1beta2.ResourcesDeployed, metav1.ConditionTrue, reason, allHasSucceeded)
	v.set(v1beta2.Finished, metav1.ConditionTrue, reason, allHasSucceeded)
	v.clear(v1beta2.DeletingResources, v1beta2.ReasonDeletionComplete, "")
	v.clear(v1beta2.OnUnhealthyNodes, v1beta2.ReasonNodesHealthy, "")
	v.clear(v1beta2.SurplusPods, v1beta2.ReasonNoSurplusPods, "")
	if !v.remains() {
		v.markNothingLeft()
	}
	v.clear(v1beta2.Unhealthy, v1beta2.ReasonFoundNoFailedPods, "")
	return v.move(v1beta2.AppWrapperSucceeded)
}

const allHasSucceeded = "the work of all components has succeeded"

// markNothingLeft records that nothing is left before the success TTL is over, because the
// components cleaned themselves up or we did.
func (v *view) markNothingLeft() {
	v.markDeleted()
	v.clear(v1beta2.ResourcesDeployed, string(v1beta2.AppWrapperSucceeded), allHasSucceeded+" and nothing is left of them")
}

// succeeded keeps the finished components, and with them their logs, for the success TTL,
// unless they clean themselves up.
func succeeded(v *view) Decision {
	if v.keeping() && !v.remains() {
		v.markNothingLeft()
		return v.stay()
	}
	if v.keeping() {
		if until := v.phaseBegan().Add(v.Policy.SuccessTTL); v.now.Before(until) {
			return v.stay().requeueAt(until, v.now)
		}
	}
	if d, gone := v.tearDown(); !gone {
		return d
	}
	v.clear(v1beta2.ResourcesDeployed, string(v1beta2.AppWrapperSucceeded),
		fmt.Sprintf("the components were removed %s after success", v.Policy.SuccessTTL))
	return v.stay()
}
