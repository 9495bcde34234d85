// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"fmt"
	"slices"
	"time"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
)

// patience is how long an AppWrapper waits before its components are created with dry run. What starts sooner is judged
// by the real creation, and costs no request more.
const patience = time.Second

// DryRun is what the API server answered when the components of an AppWrapper that waits were created with dry run.
type DryRun struct {
	// Asked is how often it was asked, at last at the time At. Denials is how often it said that this is forbidden.
	Asked, Denials int
	At             time.Time
	// Component is the index of the component of which it refused the creation, and Refusal what it said; nil if it
	// refused none, or for a reason that may be gone when there is quota.
	Component int
	Refusal   *Refusal
}

// longestSilence bounds the time until somebody is asked again who did not answer, which doubles.
const longestSilence = 5 * time.Minute

// Answered returns what is known after one more answer. A denial that is repeated later, word for word, is final.
func (d DryRun) Answered(component int, refusal *Refusal, at time.Time) DryRun {
	before := d.Refusal
	d.Asked, d.At = d.Asked+1, at
	if refusal != nil && refusal.Unanswered && before != nil {
		return d // what was said before is still to be said again
	}
	d.Component, d.Refusal = component, refusal
	if refusal != nil && refusal.Denied {
		d.Denials++
		if before != nil && *before == *refusal {
			d.Refusal = &Refusal{Message: refusal.Message, Final: true}
		}
	}
	return d
}

// due is when to ask, if that is still to be done: once, again about a denial, and until there is an answer.
func (d DryRun) due(since time.Time) (at time.Time, wanted bool) {
	switch {
	case d.Asked == 0:
		return since.Add(patience), true
	case d.Refusal == nil:
	case d.Refusal.Unanswered:
		return d.At.Add(min(time.Second<<min(d.Asked, 20), longestSilence)), true
	case d.Refusal.Denied && d.Denials == 1:
		return d.At.Add(repeatAfter), true
	}
	return time.Time{}, false
}

// attempted: an attempt has begun before, which has shown what can be created.
func (v *view) attempted() bool {
	return slices.ContainsFunc(v.status.ComponentStatus, func(c v1beta2.AppWrapperComponentStatus) bool { return len(c.Conditions) > 0 })
}

// tryCreation has the components created with dry run, so that work that can never run does not wait for quota. It
// does not apply if nothing is to be done now; due is when it will be, zero is never.
func (v *view) tryCreation() (d Decision, applies bool, due time.Time) {
	if v.DryRun == nil || v.attempted() {
		return Decision{}, false, time.Time{}
	}
	if refusal := v.DryRun.Refusal; refusal != nil && refusal.Final {
		i := v.DryRun.Component
		message := fmt.Sprintf("%s %q could not be created: %s", v.Components[i].Kind, v.Components[i].Name, refusal.Message)
		return v.fail(v1beta2.ReasonCreateFailed, message).because(CauseCreationRejected), true, time.Time{}
	}
	at, wanted := v.DryRun.due(v.phaseBegan())
	if !wanted || v.now.Before(at) {
		return Decision{}, false, at
	}
	return v.do(TryCreate, v.where(func(int) bool { return true })), true, time.Time{}
}
