// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
)

// Refusal is why a component was not created.
type Refusal struct {
	// Message is what the API server said, or what is wrong with the template.
	Message string
	// Final: another attempt cannot succeed, for example because the resource is invalid or
	// its kind does not exist.
	Final bool
}

// Refuse returns a copy of the status that says that component i was refused; the next
// decision reads it. Unlike elsewhere, the condition's time is that of the latest refusal even
// if its status does not change: the pause before the next attempt counts from it.
func Refuse(status v1beta2.AppWrapperStatus, i int, r Refusal, now time.Time) v1beta2.AppWrapperStatus {
	status = *status.DeepCopy()
	reason := v1beta2.ReasonComponentCreationErrored
	if r.Final {
		reason = v1beta2.ReasonComponentCreationRejected
	}
	conditions := &status.ComponentStatus[i].Conditions
	setCondition(conditions, v1beta2.ResourcesDeployed, metav1.ConditionFalse, reason, r.Message, now)
	meta.FindStatusCondition(*conditions, string(v1beta2.ResourcesDeployed)).LastTransitionTime = metav1.Time{Time: now}
	return status
}
