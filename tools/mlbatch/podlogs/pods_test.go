// SPDX-License-Identifier: Apache-2.0

package podlogs_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mlbatch/mlbatch/tools/mlbatch/podlogs"
)

// pod is one with one container, which has a state.
func pod(phase corev1.PodPhase, state corev1.ContainerState) *corev1.Pod {
	return &corev1.Pod{
		Spec:   corev1.PodSpec{NodeName: "node-1", Containers: []corev1.Container{{Name: "main"}}},
		Status: corev1.PodStatus{Phase: phase, ContainerStatuses: []corev1.ContainerStatus{{Name: "main", State: state}}},
	}
}

func TestThePodsSayWhyTheyDoNotRun(t *testing.T) {
	unschedulable := pod(corev1.PodPending, corev1.ContainerState{})
	unschedulable.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: "False", Reason: "Unschedulable", Message: "0/3 nodes are available"}}
	evicted := pod(corev1.PodFailed, corev1.ContainerState{})
	evicted.Status.Reason, evicted.Status.Message = "Evicted", "the node was low on memory"
	leaving := pod(corev1.PodRunning, corev1.ContainerState{})
	leaving.DeletionTimestamp, leaving.Finalizers = &metav1.Time{}, []string{"f/f"}
	for want, p := range map[string]*corev1.Pod{
		"Pending: 0/3 nodes are available":         unschedulable,
		"Failed: the node was low on memory":       evicted,
		"Running, being deleted":                   leaving,
		"Pending: ContainerCreating":               pod(corev1.PodPending, corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}}),
		"Pending: ImagePullBackOff: no such image": pod(corev1.PodPending, corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff", Message: "no such\n image"}}),
		"Succeeded": pod(corev1.PodSucceeded, corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: "Completed"}}),
		"Pending":   pod("", corev1.ContainerState{}),
	} {
		if got := podlogs.Sorted([]corev1.Pod{*p})[0].State; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
