// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
)

func TestALostNodeReportsNothingUntilItsPodIsGone(t *testing.T) {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "blue", Name: "one", UID: "one"},
		Spec:       corev1.PodSpec{NodeName: "play-0"}, Status: corev1.PodStatus{Phase: corev1.PodPending},
	}
	api := fake.NewClientset(pod)
	nodes, err := Start(t.Context(), api, 1)
	if err != nil {
		t.Fatal(err)
	}
	life := make(chan *corev1.Pod, 1)
	nodes.lives[pod.UID] = life
	if err := nodes.Lose(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	if _, err := api.CoreV1().Nodes().Get(t.Context(), "play-0", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the node is there, or %v", err)
	}
	if err := nodes.save(t.Context(), pod, corev1.PodStatus{Phase: corev1.PodRunning}); err != nil {
		t.Error(err)
	}
	if err := nodes.remove(t.Context(), pod); err != nil {
		t.Error(err)
	}
	if now, err := api.CoreV1().Pods("blue").Get(t.Context(), "one", metav1.GetOptions{}); err != nil || now.Status.Phase != corev1.PodPending {
		t.Errorf("its pod is %s, %v", now.Status.Phase, err)
	}
	if !nodes.Busy("blue") {
		t.Error("nothing more is expected, and Kubernetes has not removed the pod yet")
	}
	nodes.See(t.Context(), pod, true)
	if nodes.Busy("blue") {
		t.Error("the pod is gone, and more is expected")
	}
}
