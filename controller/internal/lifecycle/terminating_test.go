// SPDX-License-Identifier: Apache-2.0

package lifecycle_test

import (
	"testing"
	"time"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/internal/lifecycle"
)

func TestTerminating(t *testing.T) {
	base := func() lifecycle.Snapshot {
		s := deployed(v1beta2.AppWrapperTerminating)
		deleted(&s)
		removing(0)(&s)
		return s
	}
	const terminating = v1beta2.AppWrapperTerminating
	checkRows(t, base, map[string]row{
		"what exists is deleted": {
			want: outcome{Phase: terminating, Effect: lifecycle.Delete, Targets: []int{0}, Requeue: 10 * time.Minute},
		},
		"the finalizer stays while a pod is left": {
			given: []change{absent, withPods(runs)},
			want:  outcome{Phase: terminating, Requeue: 10 * time.Minute},
		},
		"after the grace force is used": {
			given: []change{terminatingJob, withPods(runs)},
			after: 10 * time.Minute,
			want:  outcome{Phase: terminating, Effect: lifecycle.ForceDelete, Targets: []int{0}},
		},
		"when nothing is left the finalizer is removed": {
			given: []change{absent},
			want: outcome{Phase: terminating, Effect: lifecycle.RemoveFinalizer, Conditions: map[string]string{
				"QuotaReserved": "False Terminating", "ResourcesDeployed": "False Terminating", "DeletingResources": "False DeletionComplete"}},
		},
		"what makes no pods does not keep it": {
			given: []change{noPods, terminatingJob, keptBy("a")},
			want: outcome{Phase: terminating, Effect: lifecycle.RemoveFinalizer, Conditions: map[string]string{
				"QuotaReserved": "False Terminating", "ResourcesDeployed": "False Terminating"}},
		},
		"what makes no pods and is going by itself does": {
			given: []change{noPods, terminatingJob},
			want:  outcome{Phase: terminating, Requeue: 10 * time.Minute},
		},
		"a status that nobody would read is not saved": {
			given: []change{absent, ours},
			want:  outcome{Phase: terminating, Effect: lifecycle.RemoveFinalizer},
		},
		"suspension makes no difference": {
			given: []change{suspend, terminatingJob},
			want:  outcome{Phase: terminating, Requeue: 10 * time.Minute},
		},
		"without our finalizer there is nothing to do": {
			given: []change{withoutFinalizer},
			want:  outcome{Phase: terminating},
		},
	})
}

// What goes within seconds goes without a status that says so.
func TestAQuickDeletionIsNotSaved(t *testing.T) {
	base := func() lifecycle.Snapshot {
		s := deployed(v1beta2.AppWrapperRunning)
		s.Deleting, s.DeletedAt, s.LastFinalizer = true, deployedAt, true
		return s
	}
	const running, terminating = v1beta2.AppWrapperRunning, v1beta2.AppWrapperTerminating
	begins := map[string]string{"DeletingResources": "True DeletionInitiated"}
	at := func(d time.Duration) change {
		return func(s *lifecycle.Snapshot) { s.DeletedAt = deployedAt.Add(d) }
	}
	checkRows(t, base, map[string]row{
		"what exists is deleted at once": {
			want: outcome{Phase: running, Effect: lifecycle.Delete, Targets: []int{0}, Requeue: 5 * time.Second},
		},
		"what goes is waited for": {
			given: []change{absent, withPods(runs)}, after: 2 * time.Second,
			want: outcome{Phase: running, Requeue: 3 * time.Second},
		},
		"the finalizer goes when nothing is left": {
			given: []change{absent},
			want:  outcome{Phase: running, Effect: lifecycle.RemoveFinalizer},
		},
		"even late": {
			given: []change{absent}, after: time.Hour,
			want: outcome{Phase: running, Effect: lifecycle.RemoveFinalizer},
		},
		"what is not gone soon is said to be going, and the grace before force begins": {
			given: []change{terminatingJob, withPods(runs)}, after: 5 * time.Second,
			want: outcome{Phase: terminating, Conditions: begins},
		},
		"a controller that comes an hour later grants the grace, too": {
			given: []change{withPods(runs)}, after: time.Hour,
			want: outcome{Phase: terminating, Conditions: begins},
		},
		"a deletion in the future does not hold it up": {
			given: []change{at(time.Hour), withPods(runs)},
			want:  outcome{Phase: terminating, Conditions: begins},
		},
		"if others have a finalizer, too, they read that nothing is left": {
			given: []change{func(s *lifecycle.Snapshot) { s.LastFinalizer = false }},
			want:  outcome{Phase: terminating, Conditions: begins},
		},
	})
}

func TestDeletionMovesToTerminatingFromEveryPhase(t *testing.T) {
	for _, phase := range append(phases, v1beta2.AppWrapperEmpty, "Levitating") {
		s := deployed(phase)
		s.Deleting = true
		d := lifecycle.Decide(s, deployedAt)
		if d.Status.Phase != v1beta2.AppWrapperTerminating {
			t.Errorf("%s → %s", name(phase), d.Status.Phase)
		}
	}
}
