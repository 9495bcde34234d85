// SPDX-License-Identifier: Apache-2.0

package lifecycle_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/internal/kinds"
	"github.com/mlbatch/mlbatch/controller/internal/lifecycle"
	"github.com/mlbatch/mlbatch/controller/internal/nodehealth"
)

// evicted adds a pod of the first component that had to leave its node, so long after the attempt began.
func evicted(after time.Duration) change {
	return func(s *lifecycle.Snapshot) {
		s.Evictions = append(s.Evictions, lifecycle.Eviction{Node: "node-x", Because: drained, At: deployedAt.Add(after)})
	}
}

var drained = nodehealth.Cause{Source: nodehealth.PodEvicted, Sign: "EvictionByEvictionAPI"}

func TestEvictionsAreNoRetry(t *testing.T) {
	noRetry := policy(func(p *lifecycle.Policy) { p.RetryLimit = 0 })
	terminal := policy(func(p *lifecycle.Policy) { p.TerminalExitCodes = []int32{13} })
	lost := condition(v1beta2.PodsReady, metav1.ConditionFalse, v1beta2.ReasonInsufficientPodsReady, time.Hour)
	failsAfter := func(begin, d time.Duration, want outcome, more ...change) row {
		return row{given: append([]change{verdict(kinds.Failed), withPods(runs), evicted(begin)}, more...), after: d, want: want}
	}
	migrates := outcome{Phase: v1beta2.AppWrapperResetting, Migrations: 1, Event: "AutopilotNoExecute", Conditions: map[string]string{
		"Unhealthy": "True AutopilotNoExecute", "DeletingResources": "True DeletionInitiated"}}
	retries, bounded := resets("FailedComponent"), resets("FailedComponent")
	bounded.Migrations = 10
	checkRows(t, runningJob, map[string]row{
		"a component that failed after a pod was evicted":                 failsAfter(time.Hour, time.Hour+time.Second, migrates, noRetry),
		"one that failed a little later, as gangs do":                     failsAfter(time.Hour, time.Hour+10*time.Minute, migrates),
		"one that failed long after":                                      failsAfter(time.Hour, time.Hour+11*time.Minute, retries),
		"one that failed long after, and whose pods were not ready since": failsAfter(time.Hour, 2*time.Hour, migrates, lost),
		"pods that nothing replaced": {
			given: []change{withPods(runs), lost, evicted(time.Hour), noRetry}, after: 2 * time.Hour, want: migrates,
		},
		"pods that something replaced": {
			given: []change{ready, withPods(runs, runs), evicted(time.Hour)}, after: time.Hour, want: outcome{Phase: v1beta2.AppWrapperRunning},
		},
		"a pod of an earlier attempt":                failsAfter(-time.Second, time.Minute, retries),
		"a pod of an attempt that ended just before": failsAfter(0, time.Minute, retries),
		"a time that is still to come":               failsAfter(24*time.Hour, time.Minute, retries),
		"a clock that is a little ahead":             failsAfter(90*time.Second, time.Minute, migrates),
		"beyond the limit":                           failsAfter(time.Minute, time.Minute, bounded, migrated(10)),
		"an exit code that forbids it": {
			given: []change{verdict(kinds.Failed), withPods(broken), evicted(time.Minute), exitedWith(13), terminal}, after: time.Minute,
			want: endsIn(v1beta2.AppWrapperFailed, "FailedComponent", map[string]string{"Unhealthy": "True FailedComponent"}),
		},
		"no eviction counts while Kueue wants the quota back": {
			given: []change{suspend, verdict(kinds.Failed), withPods(runs), evicted(time.Minute)}, after: time.Minute,
			want: endsIn(v1beta2.AppWrapperSuspending, "ExternallySuspended", map[string]string{"DeletingResources": "True DeletionInitiated"}),
		},
		"a pod of a finished component": {
			given: []change{and("second"), finished, verdict(kinds.Succeeded), withPods(runs), evicted(time.Minute), func(s *lifecycle.Snapshot) {
				s.Components[1].Verdict = kinds.Failed
			}}, after: time.Minute, want: retries,
		},
	})
}

// What a node itself shows says more about it. The next attempt may use it when the taint is gone.
func TestAnEvictionNamesItsNode(t *testing.T) {
	s := deployed(v1beta2.AppWrapperRunning)
	for _, c := range []change{verdict(kinds.Failed), withPods(broken, broken), onUnhealthyNodes(0), evicted(time.Minute), evicted(time.Minute), func(s *lifecycle.Snapshot) {
		s.Pods[0].MigrateBecause = []nodehealth.Cause{{Source: nodehealth.NodeTaint, Sign: "example.com/broken:NoExecute"}}
		s.Evictions = append(s.Evictions, lifecycle.Eviction{Node: "node-a", Because: drained, At: deployedAt.Add(time.Minute)})
	}} {
		c(&s)
	}
	d := lifecycle.Decide(s, deployedAt.Add(time.Minute))
	const want = "pods failed or were lost because of their nodes: node-a (NodeTaint example.com/broken:NoExecute), node-x (PodEvicted EvictionByEvictionAPI); 1 of 1 components failed"
	if d.Event == nil || d.Event.Message != want {
		t.Errorf("it says %+v", d.Event)
	}
	if diff := cmp.Diff([]nodehealth.Source{nodehealth.NodeTaint, nodehealth.PodEvicted}, d.Left); diff != "" || len(d.Status.AvoidedNodes) > 0 {
		t.Errorf("it avoids %v, and left (-want +got)\n%s", d.Status.AvoidedNodes, diff)
	}
}
