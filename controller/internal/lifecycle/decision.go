// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"time"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
)

// Decision is what happens next, in the order of its fields.
type Decision struct {
	// Status is to be saved where it differs from the snapshot's. If that fails,
	// nothing else happens.
	Status v1beta2.AppWrapperStatus
	// Event is to be announced once Status is saved; nil where nothing happened.
	Event *Event
	// Effect is to be carried out once Status is saved.
	Effect Effect
	// Targets are the indexes of the components that a Create, Delete or ForceDelete
	// is about, in ascending order.
	Targets []int
	// Because is why the phase is left, as docs/lifecycle.md has it; for the log. In
	// Running it is the check that applied.
	Because string
	// Requeue is when to look again though nothing was seen to change; 0 is never.
	Requeue time.Duration
}

// Effect is the one thing that a decision does to the world besides the status.
type Effect string

// The effects. There are no others.
//
// If the reader lagged behind, quota may have been given back since the snapshot, or a
// new attempt may have begun. So before a Create, Delete or ForceDelete the actor makes
// sure, with a live read, that the AppWrapper still has the resourceVersion that was last
// observed or saved, and does nothing otherwise.
const (
	// Nothing is to be done.
	Nothing Effect = ""

	// AddFinalizer adds our finalizer to the AppWrapper.
	AddFinalizer Effect = "AddFinalizer"

	// Create creates the target components in order, each controlled by the AppWrapper
	// and under its own name (kinds.ObjectName), and stops at the first refusal, which
	// it writes into the status with Refuse. A component that exists already and is
	// controlled by this AppWrapper (by UID) was created before. No refusal: look again
	// at once, for some kinds are not watched.
	Create Effect = "Create"

	// Delete deletes the target components, in the background, by name and with the UID
	// that was observed. A component that is gone was deleted before.
	Delete Effect = "Delete"

	// ForceDelete deletes every pod of the AppWrapper without a grace period; where
	// there is no pod left, it does the same to the target components.
	ForceDelete Effect = "ForceDelete"

	// RemoveFinalizer removes our finalizer from the AppWrapper.
	RemoveFinalizer Effect = "RemoveFinalizer"
)

// Moved tells whether a decision about the snapshot enters another phase.
func (d Decision) Moved(from Snapshot) bool {
	return d.Status.Phase != from.Status.Phase
}
