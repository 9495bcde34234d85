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

// endedAndKept adds a pod that has ended, and that a finalizer keeps.
func endedAndKept(s *lifecycle.Snapshot) {
	s.Pods = append(s.Pods, lifecycle.Pod{Phase: done, Terminating: true, Finalizers: []string{"a"}})
}

// kept makes the Job something that makes no pods, and that a finalizer keeps. Since then only that
// is left.
func kept(since time.Duration) change {
	return func(s *lifecycle.Snapshot) {
		noPods(s)
		terminatingJob(s)
		keptBy("a")(s)
		condition(v1beta2.ResourcesDeployed, metav1.ConditionFalse, "Resetting", since)(s)
	}
}

// removed sets that nothing exists, and that the status says so.
func removed(at time.Duration) change {
	return func(s *lifecycle.Snapshot) {
		absent(s)
		condition(v1beta2.ResourcesDeployed, metav1.ConditionFalse, "Resetting", at)(s)
		condition(v1beta2.DeletingResources, metav1.ConditionFalse, v1beta2.ReasonDeletionComplete, at)(s)
		componentCondition(0, v1beta2.ResourcesDeployed, metav1.ConditionFalse, v1beta2.ReasonComponentDeleted, at)(s)
	}
}

// The message names what prevents the removal once force has not helped. It is written only
// once.
func TestRemovalNamesItsBlockers(t *testing.T) {
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
		"a component with its finalizers":           {[]change{terminatingJob, keptBy("example.com/a", "example.com/b")}, 10 * time.Minute, ofJob},
		"not before force is used":                  {[]change{terminatingJob, keptBy("example.com/a")}, 10*time.Minute - time.Second, ""},
		"not a component that is not being deleted": {[]change{keptBy("example.com/a")}, 10 * time.Minute, ""},
		"not a component without finalizers":        {[]change{terminatingJob}, 10 * time.Minute, ""},
		"the finalizers of pods, each one once":     {[]change{absent, leaving("c", "b"), leaving("b")}, time.Hour, "pods are kept by their finalizers b, c"},
		"a missing permission, at once":             {[]change{unreadableJob}, time.Second, `the controller lacks the permission to get Job "train"`},
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
