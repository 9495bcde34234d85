// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
)

func (v *view) fail(reason, message string) Decision {
	v.set(v1beta2.Unhealthy, metav1.ConditionTrue, reason, message)
	v.clear(v1beta2.PodsReady, string(v1beta2.AppWrapperFailed), "")
	v.set(v1beta2.Finished, metav1.ConditionTrue, string(v1beta2.AppWrapperFailed), message)
	return v.move(v1beta2.AppWrapperFailed).announcing(unhealthyEvent(reason, message))
}

// failed keeps the components for their author to inspect, if an annotation asks for it, and
// then removes them. Quota is held until then, unless Kueue wants it back.
func failed(v *view) Decision {
	began, hold := v.phaseBegan(), v.Policy.DeletionOnFailureHold
	if v.keeping() && !v.Suspend {
		if until := began.Add(hold); v.now.Before(until) {
			// As old as the phase; see phaseBegan.
			setCondition(&v.status.Conditions, v1beta2.DeletingResources, metav1.ConditionFalse, v1beta2.ReasonDeletionPaused,
				fmt.Sprintf("%s is %s", v1beta2.DeletionOnFailureGracePeriodAnnotation, hold), began)
			return v.stay().requeueAt(until, v.now)
		}
	}
	if v.releasable() { // Kueue looks at ResourcesDeployed
		v.clear(v1beta2.ResourcesDeployed, string(v1beta2.AppWrapperFailed), onlyKept)
		v.clear(v1beta2.QuotaReserved, string(v1beta2.AppWrapperFailed), onlyKept)
	}
	if d, gone := v.tearDown(); !gone {
		return d
	}
	message := nothingDeployed
	if v.Suspend {
		message = "the components were removed because spec.suspend is true"
	}
	v.clear(v1beta2.PodsReady, string(v1beta2.AppWrapperFailed), "")
	v.clear(v1beta2.ResourcesDeployed, string(v1beta2.AppWrapperFailed), message)
	v.clear(v1beta2.QuotaReserved, string(v1beta2.AppWrapperFailed), nothingDeployed)
	return v.stay()
}
