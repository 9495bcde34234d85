// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"slices"
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
	// Denied: admission forbids it. Who says the same again repeatAfter the first refusal means it, so it
	// is final then.
	Denied bool
	// Unanswered: the API server, or a webhook that it asks, did not answer. That is not the fault of the
	// work, so it costs no retry, however long it takes.
	Unanswered bool
}

// repeatAfter is how long a denial is not believed: what it misses may have been created a moment ago.
const repeatAfter = 10 * time.Second

// Refuse returns a copy of the status that says that component i was refused; the next
// decision reads it. Unlike elsewhere, the times of these conditions move even if their status
// does not change. The pause before the next attempt counts from that of ResourcesDeployed,
// the latest refusal. The admission grace counts from that of CreationRefused, the first
// refusal. If an attempt came later than it was due, the delay is added to the latter. It begins
// anew with the first answer after none came.
func Refuse(status v1beta2.AppWrapperStatus, i int, r Refusal, now time.Time) v1beta2.AppWrapperStatus {
	status = *status.DeepCopy()
	conditions := &status.ComponentStatus[i].Conditions
	first, latest := firstSince(*conditions, r, now), meta.FindStatusCondition(*conditions, string(v1beta2.ResourcesDeployed))
	saidSo := latest != nil && latest.Status == metav1.ConditionFalse && latest.Message == r.Message && now.Sub(first) >= repeatAfter
	reason := v1beta2.ReasonComponentCreationErrored
	if r.Final || r.Denied && saidSo {
		reason = v1beta2.ReasonComponentCreationRejected
	}
	since := reason
	if r.Unanswered {
		since = v1beta2.ReasonComponentCreationUnanswered
	}
	stamp(conditions, v1beta2.ResourcesDeployed, metav1.ConditionFalse, reason, r.Message, now)
	stamp(conditions, v1beta2.ComponentRefused, metav1.ConditionTrue, since, "", first)
	return status
}

// firstSince is when the refusals began of which r is the latest. Another controller may have written the status: it
// need not have both conditions.
func firstSince(conditions []metav1.Condition, r Refusal, now time.Time) time.Time {
	first, latest := meta.FindStatusCondition(conditions, string(v1beta2.ComponentRefused)), meta.FindStatusCondition(conditions, string(v1beta2.ResourcesDeployed))
	if first == nil || first.Reason == v1beta2.ReasonComponentCreationUnanswered && !r.Unanswered {
		return now
	}
	began := first.LastTransitionTime.Time
	if latest == nil {
		return began
	}
	due := latest.LastTransitionTime.Add(pause(began, latest.LastTransitionTime.Time))
	return began.Add(max(now.Sub(due), 0))
}

// stamp sets a condition and its time.
func stamp(conditions *[]metav1.Condition, kind v1beta2.AppWrapperCondition, status metav1.ConditionStatus, reason, message string, at time.Time) {
	setCondition(conditions, kind, status, reason, message, at)
	meta.FindStatusCondition(*conditions, string(kind)).LastTransitionTime = metav1.Time{Time: at}
}

// The pause between two attempts to create a component doubles within these bounds.
const (
	shortestPause = time.Second
	longestPause  = 15 * time.Second
)

// pause is the time between the first refusal and the latest, so it doubles with every attempt.
func pause(first, latest time.Time) time.Duration {
	return min(max(latest.Sub(first), shortestPause), longestPause)
}

// firstRefusal is when a creation was first refused in this attempt, not counting delays, or
// else when the attempt began.
func (v *view) firstRefusal() time.Time {
	first := v.transitionTime(v1beta2.ResourcesDeployed)
	for i := range v.Components {
		if c := v.componentCondition(i, v1beta2.ComponentRefused); c != nil {
			first = later(first, c.LastTransitionTime.Time)
		}
	}
	return first
}

// unanswered: nobody has answered the latest attempt to create one of these components.
func (v *view) unanswered(refused []int) bool {
	return slices.ContainsFunc(refused, func(i int) bool {
		c := v.componentCondition(i, v1beta2.ComponentRefused)
		return c != nil && c.Reason == v1beta2.ReasonComponentCreationUnanswered
	})
}

// nextAttempt is when to try again after the latest refusal.
func (v *view) nextAttempt() time.Time {
	var latest time.Time
	for _, i := range v.where(v.refusedForNow) {
		latest = later(latest, v.componentCondition(i, v1beta2.ResourcesDeployed).LastTransitionTime.Time)
	}
	if latest.IsZero() {
		return v.now
	}
	return latest.Add(pause(v.firstRefusal(), latest))
}
