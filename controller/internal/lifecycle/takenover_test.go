// SPDX-License-Identifier: Apache-2.0

package lifecycle_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/internal/kinds"
	"github.com/mlbatch/mlbatch/controller/internal/lifecycle"
)

// leftBy is an AppWrapper of one Job with two pods as AppWrapper 1.2 writes it: without our
// additions, and with its own reasons. Its conditions changed at deployedAt.
func leftBy(phase v1beta2.AppWrapperPhase, component, reason string, conditions ...string) func() lifecycle.Snapshot {
	return func() lifecycle.Snapshot {
		s := deployed(phase)
		s.Status.PhaseTransitionTime = nil
		s.Status.Conditions = nil
		for i := 0; i < len(conditions); i += 3 {
			condition(v1beta2.AppWrapperCondition(conditions[i]), metav1.ConditionStatus(conditions[i+1]), conditions[i+2], 0)(&s)
		}
		c := &s.Status.ComponentStatus[0]
		c.Conditions = nil
		if component != "" {
			componentCondition(0, v1beta2.ResourcesDeployed, metav1.ConditionStatus(component), reason, 0)(&s)
		} else {
			c.Name, c.Kind, c.APIVersion = "", "", ""
		}
		return s
	}
}

const created, misspelt = "ComponentCreatedSuccessfully", "CompononetDeleted"

// unchanged keeps the phase and does nothing.
func unchanged(phase v1beta2.AppWrapperPhase, requeue time.Duration) outcome {
	return outcome{Phase: phase, Requeue: requeue}
}

// When the controller takes over an AppWrapper of version 1.2, it creates or deletes only what
// the phase requires.
func TestAppWrappersOfVersion12AreTakenOver(t *testing.T) {
	const (
		yes, no             = "True", "False"
		quota, there, ready = "QuotaReserved", "ResourcesDeployed", "PodsReady"
		unhealthy, deleting = "Unhealthy", "DeletingResources"
		resuming            = "Resuming"
	)
	running := leftBy(v1beta2.AppWrapperRunning, yes, created,
		quota, yes, resuming, there, yes, resuming, ready, yes, "SufficientPodsReady", unhealthy, no, "FoundNoFailedPods")
	for name, tc := range map[string]struct {
		base func() lifecycle.Snapshot
		row  row
	}{
		"Suspended, never admitted": {
			leftBy(v1beta2.AppWrapperSuspended, "", ""),
			row{given: []change{absent, suspend, withoutFinalizer, withPods()}, want: unchanged(v1beta2.AppWrapperSuspended, 0)},
		},
		"Suspended, after a suspension": {
			leftBy(v1beta2.AppWrapperSuspended, no, misspelt,
				quota, no, "Suspended", there, no, "Suspended", ready, no, "Suspended", unhealthy, no, "Suspended", deleting, no, "DeletionComplete"),
			row{given: []change{absent, suspend, withPods()}, want: unchanged(v1beta2.AppWrapperSuspended, 0)},
		},
		"Resuming, nothing tried yet": {
			leftBy(v1beta2.AppWrapperResuming, "", "", quota, yes, resuming, there, yes, resuming, ready, no, resuming, unhealthy, no, resuming),
			row{given: []change{absent, withPods()}, want: unchanged(v1beta2.AppWrapperResuming, 0)}, // the intent comes before the creation
		},
		"Resuming, created, and its last write did not come": {
			leftBy(v1beta2.AppWrapperResuming, "Unknown", "ComponentCreationInitiated", quota, yes, resuming, there, yes, resuming),
			row{given: []change{withPods(runs, runs)}, want: endsIn(v1beta2.AppWrapperRunning, "", map[string]string{
				"PodsReady": "True SufficientPodsReady", "Unhealthy": "False FoundNoFailedPods"})},
		},
		"Resuming again, after what it had removed": {
			leftBy(v1beta2.AppWrapperResuming, no, misspelt, quota, yes, resuming, there, yes, resuming, deleting, no, "DeletionComplete"),
			row{given: []change{absent, withPods()}, want: unchanged(v1beta2.AppWrapperResuming, 0)},
		},
		"Running": {running, row{given: []change{withPods(runs, runs)}, after: 24 * time.Hour, want: unchanged(v1beta2.AppWrapperRunning, 0)}},
		"Running, retried": {
			running, row{given: []change{retried(2), withPods(runs, runs)}, after: 24 * time.Hour, want: outcome{Phase: v1beta2.AppWrapperRunning, Retries: 2}},
		},
		"Running, and complete by now": {running, row{given: []change{verdict(kinds.Succeeded), withPods(done, done)}, after: time.Hour, want: success}},
		"Resetting, while it removes": {
			leftBy(v1beta2.AppWrapperResetting, yes, created, quota, yes, resuming, there, yes, resuming, unhealthy, yes, "FailedComponent", deleting, yes, "DeletionInitiated"),
			row{given: []change{retried(1), terminatingJob, withPods(runs)}, after: time.Minute,
				want: outcome{Phase: v1beta2.AppWrapperResetting, Retries: 1, Requeue: 9 * time.Minute}},
		},
		"Resetting, in its pause": {
			leftBy(v1beta2.AppWrapperResetting, no, misspelt, quota, yes, resuming, there, no, "Resetting", unhealthy, yes, "FailedComponent", deleting, no, "DeletionComplete"),
			row{given: []change{retried(1), absent, withPods()}, after: time.Minute,
				want: outcome{Phase: v1beta2.AppWrapperResetting, Retries: 1, Requeue: 30 * time.Second}},
		},
		"Suspending": {
			leftBy(v1beta2.AppWrapperSuspending, yes, created, quota, yes, resuming, there, yes, resuming, deleting, yes, "DeletionInitiated"),
			row{given: []change{suspend, terminatingJob, withPods(runs)}, after: time.Minute, want: unchanged(v1beta2.AppWrapperSuspending, 9*time.Minute)},
		},
		"Succeeded": {
			leftBy(v1beta2.AppWrapperSucceeded, yes, created, quota, no, "Succeeded", there, yes, "Succeeded", ready, yes, "SufficientPodsReady"),
			row{given: []change{withPods(done, done)}, after: time.Hour, want: unchanged(v1beta2.AppWrapperSucceeded, 7*24*time.Hour-time.Hour)},
		},
		"Succeeded, and removed": {
			leftBy(v1beta2.AppWrapperSucceeded, no, misspelt, quota, no, "Succeeded", there, no, "Succeeded", deleting, no, "DeletionComplete"),
			row{given: []change{absent, withPods()}, after: time.Hour, want: unchanged(v1beta2.AppWrapperSucceeded, 0)},
		},
		"Failed, and kept for its author": {
			leftBy(v1beta2.AppWrapperFailed, yes, created, quota, yes, resuming, there, yes, resuming, unhealthy, yes, "FailedComponent", deleting, no, "DeletionPaused"),
			row{given: []change{policy(func(p *lifecycle.Policy) { p.DeletionOnFailureHold = time.Hour }), verdict(kinds.Failed), withPods(broken)}, after: time.Minute,
				want: unchanged(v1beta2.AppWrapperFailed, 59*time.Minute)},
		},
		"Failed, and removed": {
			leftBy(v1beta2.AppWrapperFailed, no, misspelt, quota, no, "Failed", there, no, "Failed", unhealthy, yes, "FailedComponent", deleting, no, "DeletionComplete"),
			row{given: []change{absent, withPods()}, after: time.Hour, want: unchanged(v1beta2.AppWrapperFailed, 0)},
		},
		"Terminating": {
			leftBy(v1beta2.AppWrapperTerminating, yes, created, quota, yes, resuming, there, yes, resuming, deleting, yes, "DeletionInitiated"),
			row{given: []change{deleted, terminatingJob, withPods(runs)}, after: time.Minute, want: unchanged(v1beta2.AppWrapperTerminating, 9*time.Minute)},
		},
	} {
		t.Run(name, func(t *testing.T) {
			checkRows(t, tc.base, map[string]row{"goes on": tc.row})
		})
	}
}
