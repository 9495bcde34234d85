// SPDX-License-Identifier: Apache-2.0

package lifecycle_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/internal/lifecycle"
)

func TestResetting(t *testing.T) {
	base := func() lifecycle.Snapshot {
		s := deployed(v1beta2.AppWrapperResetting)
		removing(0)(&s)
		return s
	}
	const resetting = v1beta2.AppWrapperResetting
	checkRows(t, base, map[string]row{
		"what exists is deleted": {
			want: outcome{Phase: resetting, Effect: lifecycle.Delete, Targets: []int{0}, Requeue: 10 * time.Minute},
		},
		"it waits for components that are being deleted": {
			given: []change{terminatingJob},
			after: time.Minute,
			want:  outcome{Phase: resetting, Requeue: 9 * time.Minute},
		},
		"it waits for pods that outlive their component": {
			given: []change{absent, withPods(done)},
			after: time.Minute,
			want:  outcome{Phase: resetting, Requeue: 9 * time.Minute},
		},
		"after the grace force is used": {
			given: []change{terminatingJob, withPods(runs)},
			after: 10 * time.Minute,
			want:  outcome{Phase: resetting, Effect: lifecycle.ForceDelete, Targets: []int{0}},
		},
		"force is not used before an ordinary deletion": {
			given: []change{withPods(runs)},
			after: time.Hour,
			want:  outcome{Phase: resetting, Effect: lifecycle.Delete, Targets: []int{0}},
		},
		"a component without pods that cannot be deleted does not protect the pods of others": {
			given: []change{and("front", noPods), terminatingJob, withPods(runs)},
			after: 10 * time.Minute,
			want:  outcome{Phase: resetting, Effect: lifecycle.ForceDelete, Targets: []int{0, 1}},
		},
		"its deletion is retried when the pods are gone": {
			given: []change{and("front", noPods), absent},
			after: 10 * time.Minute,
			want:  outcome{Phase: resetting, Effect: lifecycle.Delete, Targets: []int{1}},
		},
		"the pause begins when everything is gone": {
			given: []change{absent},
			after: 3 * time.Minute,
			want: outcome{Phase: resetting, Requeue: 90 * time.Second,
				Conditions: map[string]string{"ResourcesDeployed": "False Resetting", "DeletingResources": "False DeletionComplete"}},
		},
		"nothing remains on an unhealthy node": {
			given: []change{absent, condition(v1beta2.OnUnhealthyNodes, metav1.ConditionTrue, v1beta2.ReasonMigrationLimitReached, 0)},
			want: outcome{Phase: resetting, Requeue: 90 * time.Second, Conditions: map[string]string{
				"ResourcesDeployed": "False Resetting", "DeletingResources": "False DeletionComplete", "OnUnhealthyNodes": "False NodesHealthy"}},
		},
		"absence does not count before the removal was recorded": {
			given: []change{absent, condition(v1beta2.DeletingResources, metav1.ConditionFalse, v1beta2.ReasonDeletionComplete, -time.Hour)},
			want: outcome{Phase: resetting, Requeue: 10 * time.Minute,
				Conditions: map[string]string{"DeletingResources": "True DeletionInitiated"}},
		},
		"within the pause it waits for the rest of it": {
			given: []change{removed(3 * time.Minute)},
			after: 4 * time.Minute,
			want:  outcome{Phase: resetting, Requeue: 30 * time.Second},
		},
		"after the pause it resumes, and past problems are cleared": {
			given: []change{removed(3 * time.Minute), condition(v1beta2.Unhealthy, metav1.ConditionTrue, v1beta2.ReasonFailedComponent, 0)},
			after: 4*time.Minute + 30*time.Second,
			want: outcome{Phase: v1beta2.AppWrapperResuming,
				Conditions: map[string]string{"ResourcesDeployed": "True Resuming", "Unhealthy": "False Resuming"}},
		},
		"what makes no pods and is kept is waited for, from when the last pod was gone": {
			given: []change{noPods, terminatingJob, keptBy("a"), endedAndKept},
			after: 15 * time.Minute,
			want: outcome{Phase: resetting, Effect: lifecycle.ForceDelete, Targets: []int{0}, Requeue: 10 * time.Minute,
				Conditions: map[string]string{"ResourcesDeployed": "False Resetting"}},
		},
		"it is waited for as long as pods are": {
			given: []change{kept(2 * time.Minute)},
			after: 12*time.Minute - time.Second,
			want:  outcome{Phase: resetting, Effect: lifecycle.ForceDelete, Targets: []int{0}, Requeue: time.Second},
		},
		"until force is due, that is the next look": {
			given: []change{kept(2 * time.Minute)},
			after: 5 * time.Minute,
			want:  outcome{Phase: resetting, Requeue: 5 * time.Minute},
		},
		"after that nothing can be created in its place": {
			given: []change{kept(2 * time.Minute), retried(1)},
			after: 12 * time.Minute,
			want:  outcome{Phase: v1beta2.AppWrapperFailed, Retries: 1, Event: "CreateFailed", Conditions: map[string]string{"Unhealthy": "True CreateFailed"}},
		},
		"without a forceful deletion grace it is waited for as long as for a creation": {
			given: []change{kept(2 * time.Minute), policy(func(p *lifecycle.Policy) { p.ForcefulDeletionGrace = 0 })},
			after: 3*time.Minute - time.Second,
			want:  outcome{Phase: resetting, Effect: lifecycle.ForceDelete, Targets: []int{0}, Requeue: time.Second},
		},
		"no annotation keeps the quota longer for it": {
			given: []change{kept(2 * time.Minute), policy(func(p *lifecycle.Policy) { p.ForcefulDeletionGrace, p.AdmissionGrace = time.Hour, time.Hour })},
			after: 12 * time.Minute,
			want:  outcome{Phase: v1beta2.AppWrapperFailed, Event: "CreateFailed", Conditions: map[string]string{"Unhealthy": "True CreateFailed"}},
		},
		"then is the next look, though force is due later": {
			given: []change{kept(2 * time.Minute), policy(func(p *lifecycle.Policy) { p.ForcefulDeletionGrace = time.Hour })},
			after: 5 * time.Minute,
			want:  outcome{Phase: resetting, Requeue: 7 * time.Minute},
		},
		"what may make pods is waited for, however long": {
			given: []change{terminatingJob, keptBy("a"), condition(v1beta2.ResourcesDeployed, metav1.ConditionFalse, "Resetting", 2*time.Minute)},
			after: time.Hour,
			want:  outcome{Phase: resetting, Effect: lifecycle.ForceDelete, Targets: []int{0}},
		},
		"the pause begins when what was kept is gone": {
			given: []change{kept(2 * time.Minute), absent},
			after: 3 * time.Minute,
			want:  outcome{Phase: resetting, Requeue: 90 * time.Second, Conditions: map[string]string{"DeletingResources": "False DeletionComplete"}},
		},
		"without a pause, it is said first that it is gone": {
			given: []change{kept(2 * time.Minute), absent, policy(func(p *lifecycle.Policy) { p.RetryPause = 0 })},
			after: 3 * time.Minute,
			want:  outcome{Phase: resetting, Conditions: map[string]string{"DeletingResources": "False DeletionComplete"}},
		},
		"suspension takes precedence": {
			given: []change{suspend},
			want:  outcome{Phase: v1beta2.AppWrapperSuspending, Event: "ExternallySuspended"},
		},
		"deletion takes precedence over suspension": {
			given: []change{suspend, deleted},
			want:  outcome{Phase: v1beta2.AppWrapperTerminating},
		},
	})
}

// Kueue has assigned the nodes that were left, and would assign them again as long as there is quota.
func TestKueueIsAskedForOtherNodes(t *testing.T) {
	base := func() lifecycle.Snapshot {
		s := deployed(v1beta2.AppWrapperResetting)
		placedByKueue(&s)
		removed(3 * time.Minute)(&s)
		return s
	}
	resetBecause := func(reason string) change { return condition(v1beta2.Unhealthy, metav1.ConditionTrue, reason, 0) }
	moves := resetBecause(v1beta2.ReasonAutopilotNoExecute)
	asks := outcome{Phase: v1beta2.AppWrapperResetting, Effect: lifecycle.Reassign, Requeue: 30 * time.Second}
	checkRows(t, base, map[string]row{
		"while it pauses, because nodes were left": {given: []change{moves}, after: 4 * time.Minute, want: asks},
		"as soon as everything is gone": {
			given: []change{moves, condition(v1beta2.DeletingResources, metav1.ConditionTrue, v1beta2.ReasonDeletionInitiated, 0), condition(v1beta2.ResourcesDeployed, metav1.ConditionTrue, "Resuming", 0)},
			after: 4 * time.Minute,
			want: outcome{Phase: v1beta2.AppWrapperResetting, Effect: lifecycle.Reassign, Requeue: 90 * time.Second,
				Conditions: map[string]string{"ResourcesDeployed": "False Resetting", "DeletingResources": "False DeletionComplete"}},
		},
		"not before": {
			given: []change{moves, exists, removing(0), condition(v1beta2.ResourcesDeployed, metav1.ConditionTrue, "Resuming", 0)},
			want:  outcome{Phase: v1beta2.AppWrapperResetting, Effect: lifecycle.Delete, Targets: []int{0}, Requeue: 10 * time.Minute},
		},
		"also for those on which pods did not start, as this retry has found out": {
			given: []change{resetBecause(v1beta2.ReasonInsufficientPodsReady), avoids(time.Hour, "a")}, after: 4 * time.Minute, want: asks,
		},
		"not for those that were avoided before": {
			given: []change{resetBecause(v1beta2.ReasonFailedComponent), avoids(time.Hour-time.Minute, "a")},
			after: 4 * time.Minute,
			want:  outcome{Phase: v1beta2.AppWrapperResetting, Requeue: 30 * time.Second},
		},
		"not because the work has failed": {
			given: []change{resetBecause(v1beta2.ReasonFailedComponent)},
			after: 4 * time.Minute,
			want:  outcome{Phase: v1beta2.AppWrapperResetting, Requeue: 30 * time.Second},
		},
		"not where the scheduler chooses nodes": {
			given: []change{moves, func(s *lifecycle.Snapshot) { s.NodesAssigned = false }},
			after: 4 * time.Minute,
			want:  outcome{Phase: v1beta2.AppWrapperResetting, Requeue: 30 * time.Second},
		},
		"and if it has not heard that after the pause, the next attempt is made": {
			given: []change{moves},
			after: 5 * time.Minute,
			want: outcome{Phase: v1beta2.AppWrapperResuming, Conditions: map[string]string{
				"ResourcesDeployed": "True Resuming", "PodsReady": "False AutopilotNoExecute", "Unhealthy": "False Resuming"}},
		},
		"its suspension is what it asks for": {
			given: []change{moves, func(s *lifecycle.Snapshot) { s.Suspend = true }},
			after: 4 * time.Minute,
			want: outcome{Phase: v1beta2.AppWrapperSuspending, Event: "ExternallySuspended",
				Conditions: map[string]string{"DeletingResources": "True DeletionInitiated"}},
		},
	})
}
