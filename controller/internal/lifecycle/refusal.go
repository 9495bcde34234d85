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
// refusal. If an attempt came later than it was due, the delay is added to the latter, and so is
// the time in which nobody answered. Its message is what was said last of a denial.
func Refuse(status v1beta2.AppWrapperStatus, i int, r Refusal, now time.Time) v1beta2.AppWrapperStatus {
	status = *status.DeepCopy()
	conditions := &status.ComponentStatus[i].Conditions
	first, said := refusedBefore(*conditions, now)
	if r.Unanswered {
		unanswered(conditions, r, now, first == nil)
		return status
	}
	since := now
	if first != nil {
		since = *first
	}
	reason, denial := v1beta2.ReasonComponentCreationErrored, ""
	if r.Denied {
		denial = r.Message
	}
	if r.Final || r.Denied && said == r.Message && now.Sub(since) >= repeatAfter {
		reason = v1beta2.ReasonComponentCreationRejected
	}
	meta.RemoveStatusCondition(conditions, string(v1beta2.ComponentUnanswered))
	stamp(conditions, v1beta2.ResourcesDeployed, metav1.ConditionFalse, reason, r.Message, now)
	stamp(conditions, v1beta2.ComponentRefused, metav1.ConditionTrue, reason, denial, since)
	return status
}

// unanswered notes that nobody answers, and since when.
func unanswered(conditions *[]metav1.Condition, r Refusal, now time.Time, alone bool) {
	const reason = v1beta2.ReasonComponentCreationErrored
	since := now
	if c := meta.FindStatusCondition(*conditions, string(v1beta2.ComponentUnanswered)); c != nil {
		since = c.LastTransitionTime.Time
	}
	stamp(conditions, v1beta2.ResourcesDeployed, metav1.ConditionFalse, reason, r.Message, now)
	if alone {
		stamp(conditions, v1beta2.ComponentRefused, metav1.ConditionTrue, reason, "", now)
	}
	stamp(conditions, v1beta2.ComponentUnanswered, metav1.ConditionTrue, reason, "", since)
}

// refusedBefore is when the refusals began, if there were any, and the last denial. Another controller may have
// written the status: it need not have all conditions.
func refusedBefore(conditions []metav1.Condition, now time.Time) (first *time.Time, said string) {
	refused := meta.FindStatusCondition(conditions, string(v1beta2.ComponentRefused))
	if refused == nil {
		return nil, ""
	}
	began := refused.LastTransitionTime.Time
	if c := meta.FindStatusCondition(conditions, string(v1beta2.ComponentUnanswered)); c != nil {
		began = began.Add(now.Sub(c.LastTransitionTime.Time))
	} else if c := meta.FindStatusCondition(conditions, string(v1beta2.ResourcesDeployed)); c != nil {
		latest := c.LastTransitionTime.Time
		began = began.Add(max(now.Sub(latest.Add(pause(began, latest))), 0))
	}
	return &began, refused.Message
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

// unansweredSince is when nobody began to answer attempts to create one of these components; zero if somebody does.
func (v *view) unansweredSince(refused []int) time.Time {
	var since time.Time
	for _, i := range refused {
		if c := v.componentCondition(i, v1beta2.ComponentUnanswered); c != nil {
			since = later(since, c.LastTransitionTime.Time)
		}
	}
	return since
}

// nextAttempt is when to try again after the latest refusal.
func (v *view) nextAttempt() time.Time {
	var latest time.Time
	refused := v.where(v.refusedForNow)
	for _, i := range refused {
		latest = later(latest, v.componentCondition(i, v1beta2.ResourcesDeployed).LastTransitionTime.Time)
	}
	if latest.IsZero() {
		return v.now
	}
	return latest.Add(pause(later(v.firstRefusal(), v.unansweredSince(refused)), latest))
}
