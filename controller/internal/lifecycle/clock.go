// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
)

// maxSkew is how far the clocks of two machines may be apart. A time further in the future
// was written before a clock was put back.
const maxSkew = time.Minute

// clampFutureTimes moves such times to now, so that their timers begin now. Otherwise they
// would take hours or years longer.
func clampFutureTimes(status *v1beta2.AppWrapperStatus, now time.Time) {
	limit := now.Add(maxSkew)
	if t := status.PhaseTransitionTime; t != nil && t.After(limit) {
		status.PhaseTransitionTime = &metav1.Time{Time: now}
	}
	clampFutureConditions(status.Conditions, limit, now)
	for _, c := range status.ComponentStatus {
		clampFutureConditions(c.Conditions, limit, now)
	}
}

func clampFutureConditions(conditions []metav1.Condition, limit, now time.Time) {
	for i := range conditions {
		if conditions[i].LastTransitionTime.After(limit) {
			conditions[i].LastTransitionTime = metav1.Time{Time: now}
		}
	}
}

// phaseBegan is when the present phase began, as far as is known. If another controller
// moved the phase, its conditions are younger than our phaseTransitionTime. If that field
// was dropped, the conditions are all there is.
func (v *view) phaseBegan() time.Time {
	var began time.Time
	if t := v.Status.PhaseTransitionTime; t != nil {
		began = t.Time
	}
	for _, c := range v.Status.Conditions {
		began = later(began, c.LastTransitionTime.Time)
	}
	return began
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
