// SPDX-License-Identifier: Apache-2.0

package wait

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/mlbatch/mlbatch/tools/mlbatch/install/helmrelease"
)

func pod(name string, status corev1.PodStatus) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: helmrelease.DefaultNamespace, Name: name, UID: types.UID(name)}, Status: status}
}

func event(of, kind, reason, message string) *corev1.Event {
	return &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: helmrelease.DefaultNamespace, Name: of + reason}, Type: kind, Reason: reason, Message: message,
		InvolvedObject: corev1.ObjectReference{UID: types.UID(of)},
	}
}

func TestPodsThatAreNotReadyAreExplained(t *testing.T) {
	api := fake.NewClientset(
		pod("well", corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}}),
		pod("done", corev1.PodStatus{Phase: corev1.PodSucceeded}),
		pod("homeless", corev1.PodStatus{Phase: corev1.PodPending}),
		pod("sick", corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: []corev1.ContainerStatus{{
			Name: "manager", RestartCount: 2,
			State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff", Message: "back-off 20s"}},
		}}}),
		event("homeless", corev1.EventTypeWarning, "FailedScheduling", "0/11 nodes are available"),
		event("sick", corev1.EventTypeNormal, "Pulled", "the image is there"),
		event("well", corev1.EventTypeWarning, "Unhealthy", "it was slow to begin"),
	)
	want := `
pod homeless is Pending and not ready
  FailedScheduling: 0/11 nodes are available
pod sick is Running and not ready
  container manager was restarted 2 times and waits: CrashLoopBackOff back-off 20s
    fake logs`
	if diff := cmp.Diff(want, explain(t.Context(), api, helmrelease.DefaultNamespace)); diff != "" {
		t.Error(diff)
	}
	for _, action := range api.Actions() {
		if action.GetSubresource() != "log" {
			continue
		}
		if options := action.(clienttesting.GenericAction).GetValue().(*corev1.PodLogOptions); !options.Previous || *options.TailLines != 10 {
			t.Errorf("the log that was asked for is not the end of the one before: %+v", options)
		}
	}
}

func TestAClusterThatDoesNotAnswerKnowsNothingOfPods(t *testing.T) {
	api := fake.NewClientset()
	api.PrependReactor("list", "pods", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, errors.New("refused") })
	if got := explain(t.Context(), api, helmrelease.DefaultNamespace); got != "" {
		t.Errorf("got %q", got)
	}
}
