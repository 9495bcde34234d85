// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
)

// phases has the function of each phase of an AppWrapper that is not being deleted. Each
// stands in the file of its phase, with the function that enters the phase.
var phases = map[v1beta2.AppWrapperPhase]func(*view) Decision{
	v1beta2.AppWrapperEmpty:      empty,
	v1beta2.AppWrapperSuspended:  suspended,
	v1beta2.AppWrapperResuming:   resuming,
	v1beta2.AppWrapperRunning:    running,
	v1beta2.AppWrapperResetting:  resetting,
	v1beta2.AppWrapperSuspending: suspending,
	v1beta2.AppWrapperSucceeded:  succeeded,
	v1beta2.AppWrapperFailed:     failed,
}

// Decide returns what to do next for the AppWrapper in the snapshot. It changes nothing in
// a phase that this version does not know, unless the AppWrapper is being deleted.
func Decide(s Snapshot, now time.Time) Decision {
	v := newView(s, now)
	if s.Deleting {
		return terminating(v)
	}
	decide, known := phases[s.Status.Phase]
	if !known {
		return v.stay()
	}
	return v.recordAttempt(decide(v))
}

// view is a snapshot while a decision is made; status is the one to be saved.
type view struct {
	Snapshot
	now    time.Time
	status v1beta2.AppWrapperStatus
}

func newView(s Snapshot, now time.Time) *view {
	s.Status = *s.Status.DeepCopy()
	clampFutureTimes(&s.Status, now)
	v := &view{Snapshot: s, now: now, status: *s.Status.DeepCopy()}
	v.forgetCrashes()
	if len(v.status.ComponentStatus) != len(s.Components) {
		v.status.ComponentStatus = initialComponents(s.Components)
	}
	return v
}

// stay keeps the phase and has no effect.
func (v *view) stay() Decision {
	return Decision{Status: v.status}
}

// do keeps the phase and has an effect on the target components.
func (v *view) do(effect Effect, targets []int) Decision {
	return Decision{Status: v.status, Effect: effect, Targets: targets}
}

// move enters another phase.
func (v *view) move(to v1beta2.AppWrapperPhase) Decision {
	v.status.Phase = to
	v.status.PhaseTransitionTime = &metav1.Time{Time: v.now}
	return Decision{Status: v.status}
}

// because adds the cause to the decision.
func (d Decision) because(cause Cause) Decision {
	d.Because = cause
	return d
}

// orBecause adds the cause if the decision has none.
func (d Decision) orBecause(cause Cause) Decision {
	if d.Because != "" {
		return d
	}
	return d.because(cause)
}

// requeueAt adds the time of the next look to the decision.
func (d Decision) requeueAt(when, now time.Time) Decision {
	if wait := when.Sub(now); wait > 0 {
		d.Requeue = wait
	}
	return d
}

func (d Decision) announcing(e *Event) Decision {
	d.Event = e
	return d
}
