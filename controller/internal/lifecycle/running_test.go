// SPDX-License-Identifier: Apache-2.0

package lifecycle_test

import (
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/internal/kinds"
	"github.com/mlbatch/mlbatch/controller/internal/lifecycle"
)

func runningJob() lifecycle.Snapshot { return deployed(v1beta2.AppWrapperRunning) }

// withSubmitter makes the Job a RayJob, with one more pod set.
func withSubmitter(s *lifecycle.Snapshot) {
	c := &s.Status.ComponentStatus[0]
	c.APIVersion, c.Kind = "ray.io/v1", "RayJob"
	c.PodSets = append(slices.Clone(c.PodSets), v1beta2.AppWrapperPodSet{Path: "template.spec.submitterPodTemplate"})
	s.Components[0].Turns = map[string]kinds.Turn{"template.spec.submitterPodTemplate": kinds.Aside}
}

// rests is Running with nothing to do or to wait for.
var rests = outcome{Phase: v1beta2.AppWrapperRunning}

var success = endsIn(v1beta2.AppWrapperSucceeded, "", map[string]string{"QuotaReserved": "False Succeeded", "ResourcesDeployed": "True Succeeded"})

func TestRunningSucceeds(t *testing.T) {
	cleaningUp := condition(v1beta2.DeletingResources, metav1.ConditionTrue, v1beta2.ReasonDeletionInitiated, time.Hour)
	checkRows(t, runningJob, map[string]row{
		"a complete Job has succeeded": {
			given: []change{verdict(kinds.Succeeded), withPods(done, done)},
			want:  success,
		},
		"a complete Job has succeeded, whatever the state of its pods": {
			given: []change{verdict(kinds.Succeeded), withPods(broken)},
			want:  success,
		},
		"a complete Job has succeeded even if it is to be suspended": {
			given: []change{verdict(kinds.Succeeded), suspend},
			want:  success,
		},
		"a Job between two waves of pods has not succeeded": {
			given: []change{ready, verdict(kinds.Running), withPods(done, done)},
			want:  rests,
		},
		"it waits for pods that still run": {
			given: []change{verdict(kinds.Succeeded), withPods(done, runs)},
			after: time.Hour,
			want:  outcome{Phase: v1beta2.AppWrapperRunning, Requeue: time.Minute},
		},
		"it waits for pods that are being deleted": {
			given: []change{verdict(kinds.Succeeded), withPods(runs), allPods(func(p *lifecycle.Pod) { p.Terminating = true })},
			after: time.Hour,
			want:  outcome{Phase: v1beta2.AppWrapperRunning, Requeue: time.Minute},
		},
		"it waits for pods of an unknown phase": {
			given: []change{verdict(kinds.Succeeded), withPods(unreachable)},
			after: time.Hour,
			want:  outcome{Phase: v1beta2.AppWrapperRunning, Requeue: time.Minute},
		},
		"after the failure grace, pods that still run are removed with their component": {
			given: []change{verdict(kinds.Succeeded), finished, withPods(done, runs)},
			after: time.Hour + time.Minute,
			want: outcome{Phase: v1beta2.AppWrapperRunning, Effect: lifecycle.Delete, Targets: []int{0}, Requeue: 10 * time.Minute,
				Conditions: map[string]string{"DeletingResources": "True DeletionInitiated"}},
		},
		"pods that a Job deletes before it is complete have the time that they were given": {
			given: []change{verdict(kinds.Succeeded), finished, withPods(done, runs), last(func(p *lifecycle.Pod) {
				p.Terminating, p.EndsBy = true, deployedAt.Add(time.Hour+5*time.Minute)
			})},
			after: time.Hour + time.Minute,
			want:  outcome{Phase: v1beta2.AppWrapperRunning, Requeue: 4 * time.Minute},
		},
		"but no longer than force would wait": {
			given: []change{verdict(kinds.Succeeded), finished, withPods(done, runs), last(func(p *lifecycle.Pod) {
				p.Terminating, p.EndsBy = true, deployedAt.Add(48*time.Hour)
			})},
			after: time.Hour + 10*time.Minute,
			want: outcome{Phase: v1beta2.AppWrapperRunning, Effect: lifecycle.Delete, Targets: []int{0}, Requeue: 10 * time.Minute,
				Conditions: map[string]string{"DeletingResources": "True DeletionInitiated"}},
		},
		"they are removed at once if Kueue wants the quota back": {
			given: []change{verdict(kinds.Succeeded), finished, withPods(done, runs), suspend},
			after: time.Hour,
			want: outcome{Phase: v1beta2.AppWrapperRunning, Effect: lifecycle.Delete, Targets: []int{0}, Requeue: 10 * time.Minute,
				Conditions: map[string]string{"DeletingResources": "True DeletionInitiated"}},
		},
		"components whose pods have ended stay": {
			given: []change{and("idle", verdict(kinds.Succeeded), finished), verdict(kinds.Succeeded), finished, withPods(runs)},
			after: time.Hour + time.Minute,
			want: outcome{Phase: v1beta2.AppWrapperRunning, Effect: lifecycle.Delete, Targets: []int{0}, Requeue: 10 * time.Minute,
				Conditions: map[string]string{"DeletingResources": "True DeletionInitiated"}},
		},
		"a removal after success ends in success even if the component is gone": {
			given: []change{absent, finished, cleaningUp},
			after: 2 * time.Hour,
			want: endsIn(v1beta2.AppWrapperSucceeded, "", map[string]string{
				"QuotaReserved": "False Succeeded", "ResourcesDeployed": "False Succeeded", "DeletingResources": "False DeletionComplete"}),
		},
		"a removal after success that takes too long is forced": {
			given: []change{absent, finished, cleaningUp, withPods(runs)},
			after: time.Hour + 10*time.Minute,
			want:  outcome{Phase: v1beta2.AppWrapperRunning, Effect: lifecycle.ForceDelete},
		},
		"force deletes all pods, so every component that makes pods is deleted first": {
			given: []change{and("second", unknownKind), and("front", unknownKind, noPods), absent, finished, cleaningUp, func(s *lifecycle.Snapshot) {
				s.Pods = []lifecycle.Pod{{Component: 0, Phase: runs}, {Component: 1, Phase: done}, {Component: 1, Phase: done}}
			}},
			after: time.Hour + 10*time.Minute,
			want:  outcome{Phase: v1beta2.AppWrapperRunning, Effect: lifecycle.Delete, Targets: []int{1}},
		},
		"pods that are left count as deployed": {
			given: []change{absent, finished, withPods(done)},
			after: 2 * time.Hour,
			want:  success,
		},
		"one component of two is not enough": {
			given: []change{ready, and("second"), verdict(kinds.Succeeded), withPods(done, done), func(s *lifecycle.Snapshot) {
				s.Pods = append(s.Pods, lifecycle.Pod{Component: 1, Phase: runs}, lifecycle.Pod{Component: 1, Phase: runs})
			}},
			want: rests,
		},
		"components without a report count by their pods": {
			given: []change{unknownKind, withPods(done, done)},
			want:  success,
		},
		"components without a report need all their pods": {
			given: []change{ready, unknownKind, withPods(done, runs)},
			want:  rests,
		},
		"pods that failed and were replaced do not prevent success": {
			given: []change{unknownKind, withPods(done, done, broken)},
			want:  success,
		},
		"nothing expected and nothing reported is no success": {
			given: []change{ready, unknownKind, noPods},
			want:  rests,
		},
		"a resource without pods does not prevent success": {
			given: []change{and("front", unknownKind, noPods), verdict(kinds.Succeeded)},
			want:  success,
		},
		"unhealthy nodes are not carried into success": {
			given: []change{condition(v1beta2.OnUnhealthyNodes, metav1.ConditionTrue, v1beta2.ReasonMigrationLimitReached, 0), verdict(kinds.Succeeded), withPods(done)},
			want: endsIn(v1beta2.AppWrapperSucceeded, "", map[string]string{
				"QuotaReserved": "False Succeeded", "ResourcesDeployed": "True Succeeded", "OnUnhealthyNodes": "False NodesHealthy"}),
		},
		"a past problem is not carried into success": {
			given: []change{condition(v1beta2.Unhealthy, metav1.ConditionTrue, v1beta2.ReasonFoundFailedPods, time.Hour), verdict(kinds.Succeeded)},
			want: endsIn(v1beta2.AppWrapperSucceeded, "", map[string]string{
				"QuotaReserved": "False Succeeded", "ResourcesDeployed": "True Succeeded", "Unhealthy": "False FoundNoFailedPods"}),
		},
	})
}

func TestRunningFails(t *testing.T) {
	missing := endsIn(v1beta2.AppWrapperFailed, "MissingComponent", map[string]string{"Unhealthy": "True MissingComponent"})
	checkRows(t, runningJob, map[string]row{
		"a missing component is a failure without a retry": {
			given: []change{absent},
			want:  missing,
		},
		"one that had failed before it was gone is retried": {
			given: []change{absent, verdict(kinds.Failed)},
			want:  resets("FailedComponent"),
		},
		"a component that is being deleted is missing": {
			given: []change{terminatingJob},
			want:  missing,
		},
		"a finished component may be missing": {
			given: []change{ready, and("second"), absent, finished, func(s *lifecycle.Snapshot) {
				s.Pods = []lifecycle.Pod{{Component: 1, Phase: runs}, {Component: 1, Phase: runs}}
			}},
			want: rests,
		},
		"a component that has failed and cleans itself up is retried": {
			given: []change{verdict(kinds.Failed), terminatingJob},
			want:  resets("FailedComponent"),
		},
		"a component that has failed is retried": {
			given: []change{verdict(kinds.Failed)},
			want:  resets("FailedComponent"),
		},
		"it is retried up to the limit": {
			given: []change{verdict(kinds.Failed), retried(3)},
			want: outcome{Phase: v1beta2.AppWrapperFailed, Retries: 3, Event: "FailedComponent",
				Conditions: map[string]string{"Unhealthy": "True FailedComponent"}},
		},
		"readiness ends with a reset": {
			given: []change{ready, verdict(kinds.Failed)},
			want: outcome{Phase: v1beta2.AppWrapperResetting, Retries: 1, Event: "FailedComponent", Conditions: map[string]string{
				"Unhealthy": "True FailedComponent", "PodsReady": "False Resetting", "DeletingResources": "True DeletionInitiated"}},
		},
		"readiness ends with a failure, however long the components are kept": {
			given: []change{ready, verdict(kinds.Failed), retried(3)},
			want: outcome{Phase: v1beta2.AppWrapperFailed, Retries: 3, Event: "FailedComponent",
				Conditions: map[string]string{"Unhealthy": "True FailedComponent", "PodsReady": "False Failed"}},
		},
		"a terminal exit code forbids a retry": {
			given: []change{verdict(kinds.Failed), withPods(broken), exitedWith(13), policy(func(p *lifecycle.Policy) { p.TerminalExitCodes = []int32{12, 13} })},
			want:  endsIn(v1beta2.AppWrapperFailed, "FailedComponent", map[string]string{"Unhealthy": "True FailedComponent"}),
		},
		"an exit code that is not among the retryable ones forbids a retry": {
			given: []change{verdict(kinds.Failed), withPods(broken), exitedWith(1), policy(func(p *lifecycle.Policy) { p.RetryableExitCodes = []int32{137} })},
			want:  endsIn(v1beta2.AppWrapperFailed, "FailedComponent", map[string]string{"Unhealthy": "True FailedComponent"}),
		},
		"a retryable exit code allows a retry": {
			given: []change{verdict(kinds.Failed), withPods(broken), exitedWith(137), policy(func(p *lifecycle.Policy) { p.RetryableExitCodes = []int32{137} })},
			want:  resets("FailedComponent"),
		},
		"an exit code that is both forbids a retry": {
			given: []change{verdict(kinds.Failed), withPods(broken), exitedWith(1), policy(func(p *lifecycle.Policy) { p.RetryableExitCodes, p.TerminalExitCodes = []int32{1}, []int32{1} })},
			want:  endsIn(v1beta2.AppWrapperFailed, "FailedComponent", map[string]string{"Unhealthy": "True FailedComponent"}),
		},
		"suspension takes precedence over failure": {
			given: []change{verdict(kinds.Failed), suspend},
			want:  endsIn(v1beta2.AppWrapperSuspending, "ExternallySuspended", map[string]string{"DeletingResources": "True DeletionInitiated"}),
		},
		"deletion takes precedence over suspension": {
			given: []change{suspend, deleted},
			want:  endsIn(v1beta2.AppWrapperTerminating, "", map[string]string{"DeletingResources": "True DeletionInitiated"}),
		},
	})
}

func TestRunningWatchesFailedPods(t *testing.T) {
	noticed := func(at time.Duration) change {
		return condition(v1beta2.Unhealthy, metav1.ConditionTrue, v1beta2.ReasonFoundFailedPods, at)
	}
	checkRows(t, runningJob, map[string]row{
		"a failed pod starts the failure grace": {
			given: []change{ready, withPods(runs, broken)},
			after: time.Hour,
			want: outcome{Phase: v1beta2.AppWrapperRunning, Requeue: time.Minute,
				Conditions: map[string]string{"Unhealthy": "True FoundFailedPods", "PodsReady": "False InsufficientPodsReady"}},
		},
		"a failed pod that is replaced by one that runs does not": {
			given: []change{ready, withPods(runs, runs, broken)},
			after: time.Hour,
			want:  rests,
		},
		"nor does one whose replacement is pending: it is lost like any other": {
			given: []change{ready, withPods(runs, pending, broken)},
			after: time.Hour,
			want: outcome{Phase: v1beta2.AppWrapperRunning, Requeue: time.Minute,
				Conditions: map[string]string{"PodsReady": "False InsufficientPodsReady"}},
		},
		"a replacement has the rest of the warmup grace": {
			given: []change{withPods(runs, pending, broken)},
			after: 70 * time.Second,
			want:  outcome{Phase: v1beta2.AppWrapperRunning, Requeue: 230 * time.Second},
		},
		"with the replacement the problem is over": {
			given: []change{noticed(10 * time.Second), withPods(runs, pending, broken)},
			after: 70 * time.Second,
			want: outcome{Phase: v1beta2.AppWrapperRunning, Requeue: 230 * time.Second,
				Conditions: map[string]string{"Unhealthy": "False FoundNoFailedPods"}},
		},
		"one replacement of two is not enough": {
			given: []change{noticed(10 * time.Second), withPods(pending, broken, broken)},
			after: 70 * time.Second,
			want: outcome{Phase: v1beta2.AppWrapperResetting, Retries: 1, Event: "FoundFailedPods",
				Conditions: map[string]string{"DeletingResources": "True DeletionInitiated"}},
		},
		"within the grace it waits for the rest of it": {
			given: []change{noticed(time.Hour), withPods(runs, broken)},
			after: time.Hour + 20*time.Second,
			want:  outcome{Phase: v1beta2.AppWrapperRunning, Requeue: 40 * time.Second},
		},
		"after the grace it is retried": {
			given: []change{noticed(time.Hour), withPods(runs, broken)},
			after: time.Hour + time.Minute,
			want: outcome{Phase: v1beta2.AppWrapperResetting, Retries: 1, Event: "FoundFailedPods",
				Conditions: map[string]string{"DeletingResources": "True DeletionInitiated"}},
		},
		"after the grace a terminal exit code ends it": {
			given: []change{noticed(time.Hour), withPods(runs, broken), exitedWith(13), policy(func(p *lifecycle.Policy) { p.TerminalExitCodes = []int32{13} })},
			after: time.Hour + time.Minute,
			want:  endsIn(v1beta2.AppWrapperFailed, "FoundFailedPods", nil),
		},
		"a failure that was noticed in an earlier attempt grants the whole grace": {
			given: []change{noticed(-time.Hour), withPods(runs, broken)},
			after: 10 * time.Second,
			want:  outcome{Phase: v1beta2.AppWrapperRunning, Requeue: 50 * time.Second},
		},
		"once the failed pod is replaced the problem is over": {
			given: []change{noticed(time.Hour), withPods(runs, runs, broken)},
			after: time.Hour + 20*time.Second,
			want: outcome{Phase: v1beta2.AppWrapperRunning,
				Conditions: map[string]string{"Unhealthy": "False FoundNoFailedPods", "PodsReady": "True SufficientPodsReady"}},
		},
		"failed pods of a finished component do not count": {
			given: []change{ready, and("second"), finished, withPods(broken), func(s *lifecycle.Snapshot) {
				s.Pods = append(s.Pods, lifecycle.Pod{Component: 1, Phase: runs}, lifecycle.Pod{Component: 1, Phase: runs})
			}},
			want: rests,
		},
		"pods of an unknown component count": {
			given: []change{withPods(runs, broken), allPods(func(p *lifecycle.Pod) { p.Component = lifecycle.UnknownComponent })},
			after: time.Hour,
			want: outcome{Phase: v1beta2.AppWrapperRunning, Requeue: time.Minute,
				Conditions: map[string]string{"Unhealthy": "True FoundFailedPods"}},
		},
	})
}

func TestRunningWatchesReadiness(t *testing.T) {
	lost := condition(v1beta2.PodsReady, metav1.ConditionFalse, v1beta2.ReasonInsufficientPodsReady, time.Hour)
	checkRows(t, runningJob, map[string]row{
		"enough running pods are ready": {
			given: []change{withPods(runs, runs)},
			want: outcome{Phase: v1beta2.AppWrapperRunning,
				Conditions: map[string]string{"PodsReady": "True SufficientPodsReady", "Unhealthy": "False FoundNoFailedPods"}},
		},
		"pods that have succeeded are ready too": {
			given: []change{withPods(runs, done)},
			want: outcome{Phase: v1beta2.AppWrapperRunning,
				Conditions: map[string]string{"PodsReady": "True SufficientPodsReady", "Unhealthy": "False FoundNoFailedPods"}},
		},
		"while they are ready there is nothing to do": {
			given: []change{ready, withPods(runs, runs)},
			after: 1000 * time.Hour,
			want:  rests,
		},
		"a pod that is being deleted is not ready": {
			given: []change{withPods(runs, runs), func(s *lifecycle.Snapshot) { s.Pods[1].Terminating = true }},
			want:  outcome{Phase: v1beta2.AppWrapperRunning, Requeue: time.Minute},
		},
		"pods that are missing have the admission grace": {
			given: []change{withPods(pending)},
			after: 20 * time.Second,
			want:  outcome{Phase: v1beta2.AppWrapperRunning, Requeue: 40 * time.Second},
		},
		"pods that are still missing then are too late": {
			given: []change{withPods(pending)},
			after: time.Minute,
			want:  startsAgain("InsufficientPodsReady"),
		},
		"pods that are missing have it from when all components existed, however late that was": {
			given: []change{createdLate, withPods()},
			after: 80 * time.Second,
			want:  outcome{Phase: v1beta2.AppWrapperRunning, Requeue: 50 * time.Second},
		},
		"pods that exist have the warmup grace from then, too": {
			given: []change{createdLate, withPods(pending, runs)},
			after: 5 * time.Minute,
			want:  outcome{Phase: v1beta2.AppWrapperRunning, Requeue: 70 * time.Second},
		},
		"pods that are missing may exist by the end of a shorter warmup grace": {
			given: []change{withPods(), policy(func(p *lifecycle.Policy) { p.WarmupGrace = 5 * time.Second })},
			after: 2 * time.Second,
			want:  outcome{Phase: v1beta2.AppWrapperRunning, Requeue: 3 * time.Second},
		},
		"pods that are missing even then have the rest of the admission grace": {
			given: []change{withPods(), policy(func(p *lifecycle.Policy) { p.WarmupGrace = 5 * time.Second })},
			after: 5 * time.Second,
			want:  outcome{Phase: v1beta2.AppWrapperRunning, Requeue: 55 * time.Second},
		},
		"pods that exist have the warmup grace": {
			given: []change{withPods(pending, runs)},
			after: time.Minute,
			want:  outcome{Phase: v1beta2.AppWrapperRunning, Requeue: 4 * time.Minute},
		},
		"a failed pod that is gone by then was the beginning of it": {
			given: []change{condition(v1beta2.Unhealthy, metav1.ConditionTrue, v1beta2.ReasonFoundFailedPods, time.Minute), withPods(pending, runs)},
			after: 5 * time.Minute,
			want:  startsAgain("InsufficientPodsReady"),
		},
		"pods that do not run then are too late": {
			given: []change{withPods(pending, runs)},
			after: 5 * time.Minute,
			want:  startsAgain("InsufficientPodsReady"),
		},
		"pods that are lost after warm-up are noticed": {
			given: []change{ready, withPods(runs)},
			after: time.Hour,
			want: outcome{Phase: v1beta2.AppWrapperRunning, Requeue: time.Minute,
				Conditions: map[string]string{"PodsReady": "False InsufficientPodsReady"}},
		},
		"pods that are lost after warm-up have the failure grace": {
			given: []change{lost, withPods(runs, pending)},
			after: time.Hour + 20*time.Second,
			want:  outcome{Phase: v1beta2.AppWrapperRunning, Requeue: 40 * time.Second},
		},
		"pods that are not replaced then are too late": {
			given: []change{lost, withPods(runs, pending)},
			after: time.Hour + time.Minute,
			want:  resets("InsufficientPodsReady"),
		},
		"pods that are replaced in time are ready again": {
			given: []change{lost, withPods(runs, runs)},
			after: time.Hour + 20*time.Second,
			want: outcome{Phase: v1beta2.AppWrapperRunning,
				Conditions: map[string]string{"PodsReady": "True SufficientPodsReady", "Unhealthy": "False FoundNoFailedPods"}},
		},
		"pods that are lost during warm-up have the rest of it": {
			given: []change{condition(v1beta2.PodsReady, metav1.ConditionFalse, v1beta2.ReasonInsufficientPodsReady, time.Minute), withPods(runs, pending)},
			after: 2 * time.Minute,
			want:  outcome{Phase: v1beta2.AppWrapperRunning, Requeue: 3 * time.Minute},
		},
		"a RayJob is ready before its job is submitted": {
			given: []change{withSubmitter, withPods(runs, runs)},
			want: outcome{Phase: v1beta2.AppWrapperRunning,
				Conditions: map[string]string{"PodsReady": "True SufficientPodsReady", "Unhealthy": "False FoundNoFailedPods"}},
		},
		"it stays so when a pod that submits it has failed": {
			given: []change{withSubmitter, ready, withPods(runs, runs, broken)},
			after: time.Hour,
			want:  rests,
		},
		"no pods expected are ready at once": {
			given: []change{noPods},
			want: outcome{Phase: v1beta2.AppWrapperRunning,
				Conditions: map[string]string{"PodsReady": "True SufficientPodsReady", "Unhealthy": "False FoundNoFailedPods"}},
		},
	})
}
