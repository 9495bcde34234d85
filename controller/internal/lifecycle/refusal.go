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
	// Final: no further attempt can do better, for example because the resource is
	// invalid or its kind does not exist.
	Final bool
}

// Refuse writes a refusal to create component i into a copy of the status, for the
// next decision to read. Unlike everywhere else the condition's time is that of the
// latest refusal even if the one before it was the same: the pause before the next
// attempt counts from it.
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
