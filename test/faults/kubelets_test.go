// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package faults_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// changePod changes the status of a pod, as its kubelet would.
func changePod(t *testing.T, pod *corev1.Pod, edit func(*corev1.PodStatus)) {
	t.Helper()
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		if err := admin.Get(t.Context(), client.ObjectKeyFromObject(pod), pod); err != nil {
			return err
		}
		edit(&pod.Status)
		return admin.Status().Update(t.Context(), pod)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// setReady is what the readiness probes have found.
func setReady(s *corev1.PodStatus, ready bool, since metav1.Time) {
	status := corev1.ConditionFalse
	if ready {
		status = corev1.ConditionTrue
	}
	for _, kind := range []corev1.PodConditionType{corev1.ContainersReady, corev1.PodReady} {
		setCondition(s, corev1.PodCondition{Type: kind, Status: status, LastTransitionTime: since})
	}
	for i := range s.ContainerStatuses {
		s.ContainerStatuses[i].Ready = ready
	}
}

func setCondition(s *corev1.PodStatus, c corev1.PodCondition) {
	for i := range s.Conditions {
		if s.Conditions[i].Type == c.Type {
			s.Conditions[i] = c
			return
		}
	}
	s.Conditions = append(s.Conditions, c)
}

func hang(t *testing.T, pods []corev1.Pod, since metav1.Time) {
	t.Helper()
	for i := range pods {
		changePod(t, &pods[i], func(s *corev1.PodStatus) { setReady(s, false, since) })
	}
}

func goOn(t *testing.T, pods []corev1.Pod) {
	t.Helper()
	for i := range pods {
		changePod(t, &pods[i], func(s *corev1.PodStatus) { setReady(s, true, metav1.Now()) })
	}
}

// pulls: the kubelet has begun with the pods, and their image does not come.
func pulls(t *testing.T, pods []corev1.Pod) {
	t.Helper()
	for i := range pods {
		changePod(t, &pods[i], func(s *corev1.PodStatus) {
			now := metav1.Now()
			s.StartTime = &now
			waiting := &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff"}
			s.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", Image: "registry.example/work:1", State: corev1.ContainerState{Waiting: waiting}}}
		})
	}
}

// starts: at last the image has come.
func starts(t *testing.T, pods []corev1.Pod) {
	t.Helper()
	for i := range pods {
		changePod(t, &pods[i], func(s *corev1.PodStatus) {
			s.Phase = corev1.PodRunning
			s.ContainerStatuses[0].State = corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Now()}}
			setReady(s, true, metav1.Now())
		})
	}
}
