// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"time"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/internal/nodehealth"
)

// Decision is what happens next, in the order of its fields.
type Decision struct {
	// Status is to be saved if it differs from the snapshot's. If saving fails, nothing else
	// happens.
	Status v1beta2.AppWrapperStatus
	// Event is to be announced once Status is saved; nil if nothing happened.
	Event *Event
	// Effect is to be carried out once Status is saved.
	Effect Effect
	// Targets are the indexes of the components of a Create, Delete or ForceDelete, in
	// ascending order.
	Targets []int
	// Because is why the phase changes, for the log and the
	// metrics. In Running it is the check that applied.
	Because Cause
	// Left is where the nodes that pods leave show that they are unhealthy, each source once.
	// It is empty unless this is a migration.
	Left []nodehealth.Source
	// Confirm: if devices of the AppWrapper compute, this must not happen. So before it is carried out, a second
	// sign is asked, if there is one, and Decide again, with its answer in Snapshot.Activity.
	Confirm bool
	// Requeue is when to look again even if nothing changes; 0 is never.
	Requeue time.Duration
}

// Effect is the one thing that a decision does besides writing the status.
type Effect string

// The effects. There are no others.
//
// If the snapshot came from a stale cache, quota may have been given back since, or a new
// attempt may have begun. So before a Create, Delete, ForceDelete, GiveBack or Reassign the actor has saved the
// AppWrapper, or reads it live and does nothing unless it still has the resourceVersion that was
// last observed. A deletion is never taken back, so a Delete because of it need not wait.
const (
	// Nothing is to be done.
	Nothing Effect = ""

	// AddFinalizer adds our finalizer to the AppWrapper.
	AddFinalizer Effect = "AddFinalizer"

	// Create creates the target components in order, each controlled by the AppWrapper
	// and named by kinds.ObjectName. It stops at the first refusal and writes it into the
	// status with Refuse. A component that this AppWrapper (by UID) controls already was
	// created before. Without a refusal it decides again at once, because some kinds are
	// not watched.
	Create Effect = "Create"

	// TryCreate creates the target components with dry run, in order, and stops at the first refusal. The answer is in
	// Snapshot.DryRun from then on.
	TryCreate Effect = "TryCreate"

	// Delete deletes the target components, in the background, by name and with the UID
	// that was observed. A missing component was deleted before.
	Delete Effect = "Delete"

	// ForceDelete deletes every pod of the AppWrapper without a grace period. If no pod is
	// left, it does the same to the target components.
	ForceDelete Effect = "ForceDelete"

	// GiveBack asks Kueue to take back the quota of the AppWrapper, which Kueue does by suspending it. It
	// may be asked more than once. Without Kueue nothing happens.
	GiveBack Effect = "GiveBack"

	// Reassign asks Kueue for other nodes than those that it has assigned, and than status.avoidedNodes. Kueue takes
	// the quota back for that, suspends the AppWrapper, and queues it again. It may be asked more than once. If Kueue
	// does not hear it, nothing happens.
	Reassign Effect = "Reassign"

	// RemoveFinalizer removes our finalizer from the AppWrapper.
	RemoveFinalizer Effect = "RemoveFinalizer"
)

// Moved tells whether the decision about the snapshot enters another phase.
func (d Decision) Moved(from Snapshot) bool {
	return d.Status.Phase != from.Status.Phase
}
