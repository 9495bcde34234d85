// SPDX-License-Identifier: Apache-2.0

package appwrapper

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// initOf is since when an init container of a pending pod runs for the first time, and when the last one ended that has
// succeeded; zero if there is none. Of a side-car, nobody waits for the end.
func initOf(pod *corev1.Pod) (since, ended metav1.Time) {
	if pod.Status.Phase != corev1.PodPending {
		return since, ended
	}
	for _, s := range pod.Status.InitContainerStatuses {
		running, end := s.State.Running, s.State.Terminated
		switch {
		case running != nil && s.RestartCount == 0 && !isSidecar(pod, s.Name):
			since = laterOf(running.StartedAt, pod.CreationTimestamp)
		case end != nil && end.ExitCode == 0:
			ended = laterOf(ended, laterOf(end.FinishedAt, pod.CreationTimestamp))
		}
	}
	return since, ended
}

func isSidecar(pod *corev1.Pod, container string) bool {
	return slices.ContainsFunc(pod.Spec.InitContainers, func(c corev1.Container) bool {
		return c.Name == container && ptr.Deref(c.RestartPolicy, "") == corev1.ContainerRestartPolicyAlways
	})
}

// laterOf corrects the clock of a node that is behind.
func laterOf(a, b metav1.Time) metav1.Time {
	if a.Before(&b) {
		return b
	}
	return a
}

// slimInit leaves what initOf reads.
func slimInit(pod, slim *corev1.Pod) {
	since, ended := initOf(pod)
	if !since.IsZero() {
		slim.Status.InitContainerStatuses = append(slim.Status.InitContainerStatuses,
			corev1.ContainerStatus{State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: since}}})
	}
	if !ended.IsZero() {
		slim.Status.InitContainerStatuses = append(slim.Status.InitContainerStatuses,
			corev1.ContainerStatus{State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{FinishedAt: ended}}})
	}
}
