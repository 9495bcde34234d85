// SPDX-License-Identifier: Apache-2.0

package lifecycle_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/internal/lifecycle"
)

// of adds pods of a component's pod set.
func of(component, podSet int, phases ...corev1.PodPhase) change {
	return func(s *lifecycle.Snapshot) {
		for _, phase := range phases {
			s.Pods = append(s.Pods, lifecycle.Pod{Component: component, PodSet: podSet, Phase: phase})
		}
	}
}

func TestPodsCountByPodSet(t *testing.T) {
	const unknown = lifecycle.UnknownPodSet
	isReady := outcome{Phase: v1beta2.AppWrapperRunning,
		Conditions: map[string]string{"PodsReady": "True SufficientPodsReady", "Unhealthy": "False FoundNoFailedPods"}}
	lacksOne := outcome{Phase: v1beta2.AppWrapperRunning, Requeue: time.Minute,
		Conditions: map[string]string{"PodsReady": "False InsufficientPodsReady"}}
	foreign := func(s *lifecycle.Snapshot) { s.Pods[len(s.Pods)-1].Foreign = true }
	checkRows(t, runningJob, map[string]row{
		"a pod that submits a RayJob never stands in for a worker": {
			given: []change{ready, withSubmitter, of(0, 0, runs), of(0, 1, runs)},
			after: time.Hour,
			want:  lacksOne,
		},
		"a pod too many of one component hides no missing pod of another": {
			given: []change{ready, and("second"), of(0, 0, runs, runs, runs), of(1, 0, runs)},
			after: time.Hour,
			want:  lacksOne,
		},
		"nor of another pod set": {
			given: []change{ready, twoPodSets, of(0, 0, runs, runs, runs), of(0, 1, runs)},
			after: time.Hour,
			want:  lacksOne,
		},
		"nor has it replaced a failed pod of that": {
			given: []change{ready, twoPodSets, of(0, 0, runs, runs, runs), of(0, 1, runs, broken)},
			after: time.Hour,
			want: outcome{Phase: v1beta2.AppWrapperRunning, Requeue: time.Minute,
				Conditions: map[string]string{"PodsReady": "False InsufficientPodsReady", "Unhealthy": "True FoundFailedPods"}},
		},
		"without a report, each pod set has to succeed": {
			given: []change{ready, unknownKind, twoPodSets, of(0, 0, done, done, done), of(0, 1, done)},
			after: time.Hour,
			want:  lacksOne,
		},
		"pods that do not say their pod set are of any": {
			given: []change{twoPodSets, of(0, unknown, runs, runs, runs), of(0, 1, runs)},
			want:  isReady,
		},
		"but only of their component": {
			given: []change{ready, and("second"), of(0, unknown, runs, runs, runs), of(1, 0, runs)},
			after: time.Hour,
			want:  lacksOne,
		},
		"a pod set that does not exist is unknown": {
			given: []change{of(0, 7, runs, runs)},
			want:  isReady,
		},
		"pods of an earlier AppWrapper are none of those that are expected": {
			given: []change{ready, of(0, 0, runs, runs), foreign},
			after: time.Hour,
			want:  lacksOne,
		},
		"what may use quota counts, whoever made it": {
			given: []change{condition(v1beta2.DeletingResources, metav1.ConditionTrue, v1beta2.ReasonDeletionInitiated, time.Hour), finished, of(0, 0, runs), foreign},
			after: time.Hour + time.Minute,
			want:  outcome{Phase: v1beta2.AppWrapperRunning, Effect: lifecycle.Delete, Targets: []int{0}, Requeue: 9 * time.Minute},
		},
	})
}
