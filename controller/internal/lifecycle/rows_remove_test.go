// SPDX-License-Identifier: Apache-2.0

package lifecycle_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/internal/lifecycle"
)

func removing(at time.Duration) change {
	return condition(v1beta2.DeletingResources, metav1.ConditionTrue, v1beta2.ReasonDeletionInitiated, at)
}

// removed: nothing exists any more, and the status says so.
func removed(at time.Duration) change {
	return func(s *lifecycle.Snapshot) {
		absent(s)
		condition(v1beta2.ResourcesDeployed, metav1.ConditionFalse, "Resetting", at)(s)
		condition(v1beta2.DeletingResources, metav1.ConditionFalse, v1beta2.ReasonDeletionComplete, at)(s)
		componentCondition(0, v1beta2.ResourcesDeployed, metav1.ConditionFalse, v1beta2.ReasonComponentDeleted, at)(s)
	}
}

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
		"what is being deleted is waited for": {
			given: []change{terminatingJob},
			after: time.Minute,
			want:  outcome{Phase: resetting, Requeue: 9 * time.Minute},
		},
		"so are pods that outlive their component": {
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
		"its deletion is tried again when the pods are gone": {
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
		"nothing is on an unhealthy node any more": {
			given: []change{absent, condition(v1beta2.OnUnhealthyNodes, metav1.ConditionTrue, v1beta2.ReasonMigrationLimitReached, 0)},
			want: outcome{Phase: resetting, Requeue: 90 * time.Second, Conditions: map[string]string{
				"ResourcesDeployed": "False Resetting", "DeletingResources": "False DeletionComplete", "OnUnhealthyNodes": "False NodesHealthy"}},
		},
		"absence is not believed before deletion was promised": {
			given: []change{absent, condition(v1beta2.DeletingResources, metav1.ConditionFalse, v1beta2.ReasonDeletionComplete, -time.Hour)},
			want: outcome{Phase: resetting, Requeue: 10 * time.Minute,
				Conditions: map[string]string{"DeletingResources": "True DeletionInitiated"}},
		},
		"within the pause it waits for the rest of it": {
			given: []change{removed(3 * time.Minute)},
			after: 4 * time.Minute,
			want:  outcome{Phase: resetting, Requeue: 30 * time.Second},
		},
		"after the pause it resumes with a clean slate": {
			given: []change{removed(3 * time.Minute), condition(v1beta2.Unhealthy, metav1.ConditionTrue, v1beta2.ReasonFailedComponent, 0)},
			after: 4*time.Minute + 30*time.Second,
			want: outcome{Phase: v1beta2.AppWrapperResuming,
				Conditions: map[string]string{"ResourcesDeployed": "True Resuming", "Unhealthy": "False Resuming"}},
		},
		"suspension comes first": {
			given: []change{suspend},
			want:  outcome{Phase: v1beta2.AppWrapperSuspending, Event: "ExternallySuspended"},
		},
		"deletion comes before suspension": {
			given: []change{suspend, deleted},
			want:  outcome{Phase: v1beta2.AppWrapperTerminating},
		},
	})
}

// Whom to turn to is said when force has not helped, and once.
func TestWhatKeepsARemovalFromItsEndIsNamed(t *testing.T) {
	const ofJob = `Job "train" is kept by its finalizers example.com/a, example.com/b`
	leaving := func(finalizers ...string) change {
		return func(s *lifecycle.Snapshot) {
			s.Pods = append(s.Pods, lifecycle.Pod{Phase: runs, Terminating: true, Finalizers: finalizers})
		}
	}
	for sentence, tc := range map[string]struct {
		given []change
		after time.Duration
		want  string
	}{
		"a component with its finalizers":       {[]change{terminatingJob, keptBy("example.com/a", "example.com/b")}, 10 * time.Minute, ofJob},
		"not before force is used":              {[]change{terminatingJob, keptBy("example.com/a")}, 10*time.Minute - time.Second, ""},
		"nor one that is not being deleted":     {[]change{keptBy("example.com/a")}, 10 * time.Minute, ""},
		"nor one that nobody keeps":             {[]change{terminatingJob}, 10 * time.Minute, ""},
		"the finalizers of pods, each one once": {[]change{absent, leaving("c", "b"), leaving("b")}, time.Hour, "pods are kept by their finalizers b, c"},
		"a right that is missing, at once":      {[]change{unseenJob}, time.Second, `the controller lacks the permission to get Job "train"`},
		"both": {[]change{terminatingJob, keptBy("example.com/a", "example.com/b"), leaving("c")}, time.Hour,
			ofJob + "; pods are kept by their finalizers c"},
	} {
		t.Run(sentence, func(t *testing.T) {
			s := deployed(v1beta2.AppWrapperResetting)
			for _, c := range append(tc.given, removing(0)) {
				c(&s)
			}
			s.Status = lifecycle.Decide(s, deployedAt.Add(tc.after)).Status
			c := meta.FindStatusCondition(s.Status.Conditions, string(v1beta2.DeletingResources))
			if c.Message != tc.want || !c.LastTransitionTime.Time.Equal(deployedAt) {
				t.Errorf("it says %q since %s", c.Message, c.LastTransitionTime)
			}
			again := lifecycle.Decide(s, deployedAt.Add(tc.after+time.Millisecond)).Status
			if diff := cmp.Diff(s.Status, again); diff != "" {
				t.Errorf("the next look writes (-before +after):\n%s", diff)
			}
			suspend(&s)
			again = lifecycle.Decide(s, deployedAt.Add(tc.after)).Status
			if c := meta.FindStatusCondition(again.Conditions, string(v1beta2.DeletingResources)); c.Message != tc.want {
				t.Errorf("when the removal changes its purpose it says %q", c.Message)
			}
		})
	}
}

func TestSuspending(t *testing.T) {
	base := func() lifecycle.Snapshot {
		s := deployed(v1beta2.AppWrapperSuspending)
		removing(0)(&s)
		suspend(&s)
		return s
	}
	checkRows(t, base, map[string]row{
		"what exists is deleted": {
			want: outcome{Phase: v1beta2.AppWrapperSuspending, Effect: lifecycle.Delete, Targets: []int{0}, Requeue: 10 * time.Minute},
		},
		"it is deleted even if Kueue has changed its mind": {
			given: []change{func(s *lifecycle.Snapshot) { s.Suspend = false }},
			want:  outcome{Phase: v1beta2.AppWrapperSuspending, Effect: lifecycle.Delete, Targets: []int{0}, Requeue: 10 * time.Minute},
		},
		"quota is kept while a pod is left": {
			given: []change{absent, withPods(runs)},
			want:  outcome{Phase: v1beta2.AppWrapperSuspending, Requeue: 10 * time.Minute},
		},
		"quota is kept while nobody can tell whether something is left": {
			given: []change{unseenJob},
			after: time.Hour,
			want:  outcome{Phase: v1beta2.AppWrapperSuspending, Effect: lifecycle.Delete, Targets: []int{0}},
		},
		"quota is given back when nothing is left": {
			given: []change{absent, ready},
			want: outcome{Phase: v1beta2.AppWrapperSuspended, Conditions: map[string]string{
				"QuotaReserved": "False Suspended", "ResourcesDeployed": "False Suspended", "PodsReady": "False Suspended",
				"Unhealthy": "False Suspended", "DeletingResources": "False DeletionComplete"}},
		},
	})
}

func TestFailed(t *testing.T) {
	base := func() lifecycle.Snapshot {
		s := deployed(v1beta2.AppWrapperFailed)
		condition(v1beta2.Unhealthy, metav1.ConditionTrue, v1beta2.ReasonFailedComponent, 0)(&s)
		return s
	}
	const failed = v1beta2.AppWrapperFailed
	hold := policy(func(p *lifecycle.Policy) { p.DeletionOnFailureHold = time.Hour })
	paused := condition(v1beta2.DeletingResources, metav1.ConditionFalse, v1beta2.ReasonDeletionPaused, 0)
	initiated := map[string]string{"DeletingResources": "True DeletionInitiated"}
	checkRows(t, base, map[string]row{
		"without a hold the components are deleted at once": {
			want: outcome{Phase: failed, Effect: lifecycle.Delete, Targets: []int{0}, Requeue: 10 * time.Minute, Conditions: initiated},
		},
		"a hold keeps them": {
			given: []change{hold},
			want:  outcome{Phase: failed, Requeue: time.Hour, Conditions: map[string]string{"DeletingResources": "False DeletionPaused"}},
		},
		"a hold keeps them for its whole time after a reset long ago": {
			given: []change{hold, condition(v1beta2.DeletingResources, metav1.ConditionFalse, v1beta2.ReasonDeletionComplete, -2*time.Hour)},
			want:  outcome{Phase: failed, Requeue: time.Hour, Conditions: map[string]string{"DeletingResources": "False DeletionPaused"}},
		},
		"a hold counts from the failure": {
			given: []change{hold, paused},
			after: 20 * time.Minute,
			want:  outcome{Phase: failed, Requeue: 40 * time.Minute},
		},
		"a hold counts from the failure also where its time was dropped": {
			given: []change{hold, paused, func(s *lifecycle.Snapshot) { s.Status.PhaseTransitionTime = nil }},
			after: 20 * time.Minute,
			want:  outcome{Phase: failed, Requeue: 40 * time.Minute},
		},
		"a hold counts from the failure also where another controller noticed it": {
			given: []change{hold, paused, func(s *lifecycle.Snapshot) {
				s.Status.PhaseTransitionTime = &metav1.Time{Time: deployedAt.Add(-time.Hour)}
			}},
			after: 20 * time.Minute,
			want:  outcome{Phase: failed, Requeue: 40 * time.Minute},
		},
		"after the hold they are deleted": {
			given: []change{hold, paused},
			after: time.Hour,
			want:  outcome{Phase: failed, Effect: lifecycle.Delete, Targets: []int{0}, Requeue: 10 * time.Minute, Conditions: initiated},
		},
		"a deletion that has begun is not held again": {
			given: []change{hold, removing(time.Hour), terminatingJob},
			after: time.Hour + time.Minute,
			want:  outcome{Phase: failed, Requeue: 9 * time.Minute},
		},
		"suspension ends the hold": {
			given: []change{hold, paused, suspend},
			after: 20 * time.Minute,
			want:  outcome{Phase: failed, Effect: lifecycle.Delete, Targets: []int{0}, Requeue: 10 * time.Minute, Conditions: initiated},
		},
		"quota is given back when nothing is left": {
			given: []change{absent, removing(0)},
			want: outcome{Phase: failed, Conditions: map[string]string{
				"QuotaReserved": "False Failed", "ResourcesDeployed": "False Failed", "DeletingResources": "False DeletionComplete"}},
		},
		"pods that are gone are not ready": {
			given: []change{absent, ready, removing(0)},
			want: outcome{Phase: failed, Conditions: map[string]string{"PodsReady": "False Failed",
				"QuotaReserved": "False Failed", "ResourcesDeployed": "False Failed", "DeletingResources": "False DeletionComplete"}},
		},
		"pods that are kept stay ready, for Kueue would evict them otherwise": {
			given: []change{hold, ready},
			after: time.Minute,
			want:  outcome{Phase: failed, Requeue: time.Hour, Conditions: map[string]string{"DeletingResources": "False DeletionPaused"}},
		},
		"after that there is nothing to do": {
			given: []change{removed(0), condition(v1beta2.QuotaReserved, metav1.ConditionFalse, "Failed", 0)},
			after: time.Hour,
			want:  outcome{Phase: failed},
		},
		"deletion ends the hold": {
			given: []change{hold, paused, deleted},
			want:  outcome{Phase: v1beta2.AppWrapperTerminating, Conditions: initiated},
		},
	})
}

// The controller may have been away when the hold began.
func TestTheHoldCountsFromTheFailureHoweverLateItIsNoticed(t *testing.T) {
	s := deployed(v1beta2.AppWrapperFailed)
	s.Policy.DeletionOnFailureHold = 10 * time.Minute
	s.Status = lifecycle.Decide(s, deployedAt.Add(5*time.Minute)).Status
	if got := lifecycle.Decide(s, deployedAt.Add(6*time.Minute)).Requeue; got != 4*time.Minute {
		t.Errorf("after 6 of 10 minutes %s are left", got)
	}
}

func TestSucceeded(t *testing.T) {
	base := func() lifecycle.Snapshot {
		s := deployed(v1beta2.AppWrapperSucceeded)
		condition(v1beta2.QuotaReserved, metav1.ConditionFalse, "Succeeded", time.Hour)(&s)
		condition(v1beta2.ResourcesDeployed, metav1.ConditionTrue, "Succeeded", 0)(&s)
		s.Status.PhaseTransitionTime = &metav1.Time{Time: deployedAt.Add(time.Hour)}
		s.Policy.SuccessTTL = 10 * time.Minute
		return s
	}
	const succeeded = v1beta2.AppWrapperSucceeded
	checkRows(t, base, map[string]row{
		"the components are kept, counted from success": {
			after: time.Hour,
			want:  outcome{Phase: succeeded, Requeue: 10 * time.Minute},
		},
		"success is known by the quota where its time was dropped": {
			given: []change{func(s *lifecycle.Snapshot) { s.Status.PhaseTransitionTime = nil }},
			after: time.Hour + time.Minute,
			want:  outcome{Phase: succeeded, Requeue: 9 * time.Minute},
		},
		"after their time they are deleted": {
			after: time.Hour + 10*time.Minute,
			want: outcome{Phase: succeeded, Effect: lifecycle.Delete, Targets: []int{0}, Requeue: 10 * time.Minute,
				Conditions: map[string]string{"DeletingResources": "True DeletionInitiated"}},
		},
		"a deletion that has begun goes on": {
			given: []change{removing(2 * time.Hour), terminatingJob},
			after: 2*time.Hour + time.Minute,
			want:  outcome{Phase: succeeded, Requeue: 9 * time.Minute},
		},
		"when they are gone it is said so": {
			given: []change{removing(2 * time.Hour), absent},
			after: 3 * time.Hour,
			want: outcome{Phase: succeeded,
				Conditions: map[string]string{"ResourcesDeployed": "False Succeeded", "DeletingResources": "False DeletionComplete"}},
		},
		"after that there is nothing to do": {
			given: []change{removed(2 * time.Hour)},
			after: 1000 * time.Hour,
			want:  outcome{Phase: succeeded},
		},
		"when they have gone by themselves it is said so": {
			given: []change{absent},
			after: time.Hour,
			want:  outcome{Phase: succeeded, Conditions: map[string]string{"ResourcesDeployed": "False Succeeded"}},
		},
		"suspension is of no interest": {
			given: []change{suspend},
			after: time.Hour,
			want:  outcome{Phase: succeeded, Requeue: 10 * time.Minute},
		},
	})
}

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
		"when nothing is left it is let go": {
			given: []change{absent},
			want: outcome{Phase: terminating, Effect: lifecycle.Release, Conditions: map[string]string{
				"QuotaReserved": "False Terminating", "ResourcesDeployed": "False Terminating", "DeletingResources": "False DeletionComplete"}},
		},
		"what nobody would read any more is not saved": {
			given: []change{absent, func(s *lifecycle.Snapshot) { s.Alone = true }},
			want:  outcome{Phase: terminating, Effect: lifecycle.Release},
		},
		"suspension is of no interest": {
			given: []change{suspend, terminatingJob},
			want:  outcome{Phase: terminating, Requeue: 10 * time.Minute},
		},
		"without our finalizer there is nothing to do": {
			given: []change{unguarded},
			want:  outcome{Phase: terminating},
		},
	})
}

func TestAPhaseThatIsNotKnownIsLeftAlone(t *testing.T) {
	base := func() lifecycle.Snapshot { return deployed("Levitating") }
	checkRows(t, base, map[string]row{
		"while it lives":      {given: []change{suspend, absent}, want: outcome{Phase: "Levitating"}},
		"until it is deleted": {given: []change{deleted}, want: endsIn(v1beta2.AppWrapperTerminating, "", map[string]string{"DeletingResources": "True DeletionInitiated"})},
	})
}
