// SPDX-License-Identifier: Apache-2.0

package lifecycle_test

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/internal/kinds"
	"github.com/mlbatch/mlbatch/controller/internal/lifecycle"
	"github.com/mlbatch/mlbatch/controller/internal/nodehealth"
)

// onUnhealthyNodes puts these pods, and no others, on unhealthy nodes.
func onUnhealthyNodes(indexes ...int) change {
	return func(s *lifecycle.Snapshot) {
		for _, i := range indexes {
			s.Pods[i].MigrateFrom = "node-" + string(rune('a'+i))
		}
	}
}

func migrated(n int32) change {
	return func(s *lifecycle.Snapshot) { s.Status.Migrations = n }
}

func TestRunningMigrates(t *testing.T) {
	migrates := outcome{Phase: v1beta2.AppWrapperResetting, Migrations: 1, Event: "AutopilotNoExecute", Conditions: map[string]string{
		"Unhealthy": "True AutopilotNoExecute", "DeletingResources": "True DeletionInitiated", "PodsReady": "False Resetting"}}
	fromWarmUp := migrates
	fromWarmUp.Conditions = resets("AutopilotNoExecute").Conditions
	again := migrates
	again.Migrations, again.Retries = 10, 3
	stays := outcome{Phase: v1beta2.AppWrapperRunning, Migrations: 10, Event: "AutopilotNoExecute",
		Conditions: map[string]string{"OnUnhealthyNodes": "True MigrationLimitReached"}}
	known := condition(v1beta2.OnUnhealthyNodes, metav1.ConditionTrue, v1beta2.ReasonMigrationLimitReached, time.Hour)
	terminal := policy(func(p *lifecycle.Policy) { p.TerminalExitCodes = []int32{13} })
	checkRows(t, runningJob, map[string]row{
		"a pod on an unhealthy node migrates": {
			given: []change{ready, withPods(runs, runs), onUnhealthyNodes(1)},
			want:  migrates,
		},
		"so does a pod that is bound to it and does not run yet": {
			given: []change{withPods(runs, pending), onUnhealthyNodes(1)},
			want:  fromWarmUp,
		},
		"a migration needs no retry to be left": {
			given: []change{ready, withPods(runs, runs), onUnhealthyNodes(0, 1), retried(3), migrated(9)},
			want:  again,
		},
		"a migration needs no retry to be allowed": {
			given: []change{ready, withPods(runs, runs), onUnhealthyNodes(0), policy(func(p *lifecycle.Policy) { p.RetryLimit = 0 })},
			want:  migrates,
		},
		"it takes precedence over failed pods, which may have the same cause": {
			given: []change{withPods(runs, broken), onUnhealthyNodes(0)},
			want:  fromWarmUp,
		},
		"a terminal exit code forbids it, as it would a retry": {
			given: []change{withPods(runs, broken), onUnhealthyNodes(0), exitedWith(13), terminal},
			want:  outcome{Phase: v1beta2.AppWrapperRunning, Requeue: time.Minute, Conditions: map[string]string{"Unhealthy": "True FoundFailedPods"}},
		},
		"a pod with a terminal exit code that was replaced does not forbid it": {
			given: []change{ready, withPods(runs, runs, broken), onUnhealthyNodes(0), exitedWith(13), terminal},
			want:  migrates,
		},
		"nor does one whose replacement is pending": {
			given: []change{ready, withPods(runs, pending, broken), onUnhealthyNodes(0), exitedWith(13), terminal},
			want:  migrates,
		},
		"a component that has failed is a retry, not a migration": {
			given: []change{verdict(kinds.Failed), withPods(runs, runs), onUnhealthyNodes(0)},
			want:  resets("FailedComponent"),
		},
		"a pod that has ended does not migrate": {
			given: []change{ready, withPods(runs, runs, done, broken), onUnhealthyNodes(2, 3)},
			want:  rests,
		},
		"a pod that is being deleted does not migrate": {
			given: []change{ready, withPods(runs, runs, runs), onUnhealthyNodes(2), func(s *lifecycle.Snapshot) { s.Pods[2].Terminating = true }},
			want:  rests,
		},
		"pods of a finished component do not migrate": {
			given: []change{ready, and("second"), finished, withPods(runs), onUnhealthyNodes(0), func(s *lifecycle.Snapshot) {
				s.Pods = append(s.Pods, lifecycle.Pod{Component: 1, Phase: runs}, lifecycle.Pod{Component: 1, Phase: runs})
			}},
			want: rests,
		},
		"pods of an unknown component do": {
			given: []change{ready, withPods(runs, runs), onUnhealthyNodes(0), allPods(func(p *lifecycle.Pod) { p.Component = lifecycle.UnknownComponent })},
			want:  migrates,
		},
		"at the limit the workload stays, and an event says so": {
			given: []change{ready, withPods(runs, runs), onUnhealthyNodes(0), migrated(10)},
			want:  stays,
		},
		"the event is sent once": {
			given: []change{ready, known, withPods(runs, runs), onUnhealthyNodes(0), migrated(10)},
			after: 5 * time.Hour,
			want:  outcome{Phase: v1beta2.AppWrapperRunning, Migrations: 10},
		},
		"the grace of another problem begins when it is noticed": {
			given: []change{ready, known, withPods(runs, broken), onUnhealthyNodes(0), migrated(10)},
			after: 5 * time.Hour,
			want: outcome{Phase: v1beta2.AppWrapperRunning, Migrations: 10, Requeue: time.Minute,
				Conditions: map[string]string{"Unhealthy": "True FoundFailedPods", "PodsReady": "False InsufficientPodsReady"}},
		},
		"a node that has recovered causes no migration": {
			given: []change{ready, known, withPods(runs, runs), migrated(10)},
			after: 5 * time.Hour,
			want:  outcome{Phase: v1beta2.AppWrapperRunning, Migrations: 10, Conditions: map[string]string{"OnUnhealthyNodes": "False NodesHealthy"}},
		},
		"suspension takes precedence": {
			given: []change{withPods(runs, runs), onUnhealthyNodes(0), suspend},
			want:  endsIn(v1beta2.AppWrapperSuspending, "ExternallySuspended", map[string]string{"DeletingResources": "True DeletionInitiated"}),
		},
		"success takes precedence": {
			given: []change{verdict(kinds.Succeeded), withPods(done, done), onUnhealthyNodes(0)},
			want:  success,
		},
	})
}

// A node that is not ready has a grace; other timers count meanwhile.
func TestRunningWaitsForNodesThatAreNotReady(t *testing.T) {
	in := func(d time.Duration, indexes ...int) change {
		return func(s *lifecycle.Snapshot) {
			onUnhealthyNodes(indexes...)(s)
			for _, i := range indexes {
				s.Pods[i].MigrateAt = deployedAt.Add(d)
			}
		}
	}
	migrates := outcome{Phase: v1beta2.AppWrapperResetting, Migrations: 1, Event: "AutopilotNoExecute", Conditions: map[string]string{
		"Unhealthy": "True AutopilotNoExecute", "DeletingResources": "True DeletionInitiated", "PodsReady": "False Resetting"}}
	waits := rests
	waits.Requeue = time.Minute
	warms := outcome{Phase: v1beta2.AppWrapperRunning, Requeue: 5 * time.Minute}
	checkRows(t, runningJob, map[string]row{
		"work that runs waits for the earliest of the nodes": {
			given: []change{ready, withPods(runs, runs), in(2*time.Minute, 0), in(time.Minute, 1)}, want: waits,
		},
		"then it migrates": {
			given: []change{ready, withPods(runs, runs), in(time.Minute, 1)}, after: time.Minute, want: migrates,
		},
		"an earlier timer comes first": {
			given: []change{withPods(runs, pending), in(time.Hour, 0)}, want: warms,
		},
	})
}

// Nodes are to blame for pods that failed on them or are lost with them, and those cost no retry.
func TestNodesAreToBlame(t *testing.T) {
	lose := func(s *lifecycle.Snapshot) { s.Pods[0].Terminating = true }
	lost := condition(v1beta2.PodsReady, metav1.ConditionFalse, v1beta2.ReasonInsufficientPodsReady, time.Minute)
	noRetry := policy(func(p *lifecycle.Policy) { p.RetryLimit = 0 })
	terminal := policy(func(p *lifecycle.Policy) { p.TerminalExitCodes = []int32{13} })
	migrates := outcome{Phase: v1beta2.AppWrapperResetting, Migrations: 1, Event: "AutopilotNoExecute", Conditions: map[string]string{
		"Unhealthy": "True AutopilotNoExecute", "DeletingResources": "True DeletionInitiated"}}
	wasReady := resets("FailedComponent")
	wasReady.Conditions = maps.Clone(wasReady.Conditions)
	wasReady.Conditions["PodsReady"] = "False Resetting"
	leavesReady := migrates
	leavesReady.Conditions = maps.Clone(migrates.Conditions)
	leavesReady.Conditions["PodsReady"] = "False Resetting"
	bounded := resets("FailedComponent")
	bounded.Migrations = 10
	checkRows(t, runningJob, map[string]row{
		"a component that failed with a pod on an unhealthy node": {
			given: []change{verdict(kinds.Failed), withPods(broken, broken), onUnhealthyNodes(1), noRetry}, want: migrates,
		},
		"failed pods that were not replaced": {
			given: []change{withPods(broken, runs), onUnhealthyNodes(0), noRetry,
				condition(v1beta2.Unhealthy, metav1.ConditionTrue, v1beta2.ReasonFoundFailedPods, 0)}, after: time.Minute, want: migrates,
		},
		"pods that are lost with their node": {
			given: []change{withPods(runs, runs), onUnhealthyNodes(0), lose, lost, noRetry}, after: time.Hour, want: migrates,
		},
		"pods that are deleted from a healthy node are a retry": {
			given: []change{withPods(runs, runs), lose, lost}, after: time.Hour, want: resets("InsufficientPodsReady"),
		},
		"a pod that was rejected and replaced is not to blame": {
			given: []change{ready, verdict(kinds.Failed), withPods(broken, broken), failedOn("a", rejected)}, want: wasReady,
		},
		"a pod that was rejected before any was ready is": {
			given: []change{verdict(kinds.Failed), withPods(broken), failedOn("a", rejected)}, want: migrates,
		},
		"a pod that was rejected after all were ready is": {
			given: []change{ready, verdict(kinds.Failed), withPods(broken), failedOn("a", rejected)}, want: leavesReady,
		},
		"where migrations cannot be stored every second is a retry": {
			given: []change{verdict(kinds.Failed), withPods(broken), onUnhealthyNodes(0),
				condition(v1beta2.PodsReady, metav1.ConditionFalse, v1beta2.ReasonAutopilotNoExecute, 0)}, want: resets("FailedComponent"),
		},
		"beyond the limit it is a retry": {
			given: []change{verdict(kinds.Failed), withPods(broken), onUnhealthyNodes(0), migrated(10)}, want: bounded,
		},
		"an exit code that forbids a retry forbids a migration": {
			given: []change{verdict(kinds.Failed), withPods(broken), onUnhealthyNodes(0), exitedWith(13), terminal},
			want:  endsIn(v1beta2.AppWrapperFailed, "FailedComponent", map[string]string{"Unhealthy": "True FailedComponent"}),
		},
		"a pod of a finished component has no part in it": {
			given: []change{and("second"), finished, verdict(kinds.Succeeded), withPods(broken), onUnhealthyNodes(0), func(s *lifecycle.Snapshot) {
				s.Components[1].Verdict = kinds.Failed
			}},
			want: resets("FailedComponent"),
		},
	})
}

// movedIn marks the current attempt as started by a migration.
func movedIn(s *lifecycle.Snapshot) {
	condition(v1beta2.PodsReady, metav1.ConditionFalse, v1beta2.ReasonAutopilotNoExecute, 0)(s)
}

func TestRunningIsLateAfterAMigration(t *testing.T) {
	noRetry := policy(func(p *lifecycle.Policy) { p.RetryLimit = 0 })
	again := outcome{Phase: v1beta2.AppWrapperResetting, Migrations: 2, Event: "AutopilotNoExecute", Conditions: map[string]string{
		"Unhealthy": "True AutopilotNoExecute", "DeletingResources": "True DeletionInitiated"}}
	retry := startsAgain("InsufficientPodsReady")
	retry.Migrations = 10
	lost := resets("InsufficientPodsReady")
	lost.Migrations = 1
	checkRows(t, runningJob, map[string]row{
		"pods that cannot be scheduled have the warmup grace": {
			given: []change{movedIn, migrated(1), noRetry, withPods(runs, pending)}, after: 5*time.Minute - time.Second,
			want: outcome{Phase: v1beta2.AppWrapperRunning, Migrations: 1, Requeue: time.Second},
		},
		"then it migrates again, and no retry is needed": {
			given: []change{movedIn, migrated(1), noRetry, withPods(runs, pending)}, after: 5 * time.Minute,
			want: again,
		},
		"so do pods that are not created": {
			given: []change{movedIn, migrated(1), noRetry}, after: time.Minute,
			want: again,
		},
		"a pod that failed meanwhile and was replaced makes no difference": {
			given: []change{movedIn, migrated(1), noRetry, withPods(runs, pending),
				condition(v1beta2.Unhealthy, metav1.ConditionFalse, v1beta2.ReasonFoundNoFailedPods, time.Second)}, after: 5 * time.Minute,
			want: again,
		},
		"at the limit of migrations it is a retry": {
			given: []change{movedIn, migrated(10), withPods(runs, pending)}, after: 5 * time.Minute,
			want: retry,
		},
		"the loss of pods that were ready there is a retry": {
			given: []change{migrated(1), withPods(runs),
				condition(v1beta2.PodsReady, metav1.ConditionFalse, v1beta2.ReasonInsufficientPodsReady, time.Minute)}, after: time.Hour,
			want: lost,
		},
	})
}

// The reason of PodsReady marks the attempts that begin with a migration, and only those.
func TestAnAttemptKnowsThatItBeganWithAMigration(t *testing.T) {
	for reason, want := range map[string]string{
		v1beta2.ReasonAutopilotNoExecute:    v1beta2.ReasonAutopilotNoExecute,
		v1beta2.ReasonInsufficientPodsReady: string(v1beta2.AppWrapperResuming),
	} {
		s := deployed(v1beta2.AppWrapperResetting)
		removed(0)(&s)
		condition(v1beta2.Unhealthy, metav1.ConditionTrue, reason, 0)(&s)
		d := lifecycle.Decide(s, deployedAt.Add(time.Hour))
		if got := meta.FindStatusCondition(d.Status.Conditions, string(v1beta2.PodsReady)); d.Status.Phase != v1beta2.AppWrapperResuming || got.Reason != want {
			t.Errorf("after %s it is %s with PodsReady %s, want %s", reason, d.Status.Phase, got.Reason, want)
		}
	}
}

func TestUnhealthyNodesAreNamedOnceAndInOrder(t *testing.T) {
	s := runningJob()
	withPods(runs, runs, runs)(&s)
	onUnhealthyNodes(2, 0)(&s)
	s.Pods[1].MigrateFrom = "node-c"
	if got := lifecycle.Decide(s, deployedAt).Event.Message; !strings.HasSuffix(got, ": node-a, node-c") {
		t.Errorf("it says %q", got)
	}
}

// Event and condition name what is wrong with each node, once and in order; the metric gets the
// sources.
func TestWhatIsWrongWithNodesIsNamed(t *testing.T) {
	s := runningJob()
	ready(&s)
	withPods(runs, runs, runs)(&s)
	onUnhealthyNodes(0, 1, 2)(&s)
	label, condition := nodehealth.Cause{Source: nodehealth.NodeLabel, Sign: "health=EVICT"}, nodehealth.Cause{Source: nodehealth.NodeCondition, Sign: "GpuUnhealthy=True"}
	s.Pods[0].MigrateBecause, s.Pods[1].MigrateBecause = []nodehealth.Cause{label, condition}, []nodehealth.Cause{label}
	s.Pods[1].MigrateFrom = s.Pods[0].MigrateFrom
	const want = ": node-a (NodeCondition GpuUnhealthy=True, NodeLabel health=EVICT), node-c"
	d := lifecycle.Decide(s, deployedAt)
	unhealthy := meta.FindStatusCondition(d.Status.Conditions, string(v1beta2.Unhealthy))
	if !strings.HasSuffix(d.Event.Message, want) || unhealthy.Message != d.Event.Message {
		t.Errorf("the event says %q, the condition %q", d.Event.Message, unhealthy.Message)
	}
	if !slices.Equal(d.Left, []nodehealth.Source{nodehealth.NodeCondition, nodehealth.NodeLabel}) {
		t.Errorf("the sources are %v", d.Left)
	}
	migrated(10)(&s)
	d = lifecycle.Decide(s, deployedAt)
	stays := meta.FindStatusCondition(d.Status.Conditions, string(v1beta2.OnUnhealthyNodes))
	if stays == nil || !strings.Contains(stays.Message, want+";") || len(d.Left) > 0 {
		t.Errorf("at the limit it leaves because of %v, and the condition is %v", d.Left, stays)
	}
}
