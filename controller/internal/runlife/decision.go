// SPDX-License-Identifier: Apache-2.0

package runlife

import (
	"slices"
	"time"

	"github.com/mlbatch/mlbatch/controller/api/codeflare/v1alpha1"
)

// Decision is what happens next, in the order of its fields.
type Decision struct {
	// NeedsPods: the decision has to be made again, with the pods in the snapshot. Nothing else of
	// it counts.
	NeedsPods bool
	// Status is to be saved if it differs from the stored one. If saving fails, nothing else
	// happens.
	Status v1alpha1.RunStatus
	// Events are to be announced once Status is saved. There are none if nothing happened.
	Events []Event
	// Effect is to be carried out once Status is saved.
	Effect Effect
	// Steps are the decisions about the steps of a workflow, in their order. Only NeedsPods and
	// Effect of them count: the rest is in Status and Events.
	Steps []Decision
	// Requeue is when to look again even if nothing changes; 0 is never.
	Requeue time.Duration
}

// Effect is the one thing that a decision does besides writing the status.
type Effect string

// The effects. There are no others.
const (
	// Nothing is to be done.
	Nothing Effect = ""

	// Create creates the planned AppWrapper. Unless the actor has just saved the Run, it reads it live
	// before, and does nothing unless it still has the resourceVersion that was observed: a stale cache may
	// not know of an AppWrapper that is recorded and gone.
	Create Effect = "Create"

	// Try asks the API server whether it would take the planned AppWrapper, and creates nothing.
	Try Effect = "Try"

	// Delete deletes the Run's AppWrapper, with the UID that was observed.
	Delete Effect = "Delete"

	// DeleteRun deletes the Run, with the resourceVersion that was observed.
	DeleteRun Effect = "DeleteRun"
)

// Acts tells whether the decision has an effect, on the Run or on one of its steps.
func (d Decision) Acts() bool {
	return d.Effect != Nothing || slices.ContainsFunc(d.Steps, Decision.Acts)
}

// stay keeps the phase and has no effect.
func (v *view) stay() Decision {
	return Decision{Status: v.status, Events: v.events}
}

// do keeps the phase and has an effect.
func (v *view) do(effect Effect) Decision {
	return Decision{Status: v.status, Effect: effect, Events: v.events}
}

// enter sets the phase, which may be the present one, and what it means.
func (v *view) enter(phase v1alpha1.RunPhase, message string) Decision {
	v.status.Phase, v.status.Message = phase, cut(message)
	return v.stay()
}

// requeueAt adds the time of a next look to the decision, unless it is past or another is sooner.
func (d Decision) requeueAt(when, now time.Time) Decision {
	if wait := when.Sub(now); wait > 0 && (d.Requeue == 0 || wait < d.Requeue) {
		d.Requeue = wait
	}
	return d
}

func (d Decision) announcing(e Event) Decision {
	d.Events = append(slices.Clip(d.Events), e)
	return d
}
