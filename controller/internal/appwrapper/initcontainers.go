// SPDX-License-Identifier: Apache-2.0

package appwrapper

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// initOf is when the init container of a pending pod was first started that has to end next, and when the last one
// ended that has succeeded; zero if there is none. When one was first started that has failed is not known: no earlier
// than the pod, and than the end of the one before. Of a side-car, nobody waits for the end.
func initOf(pod *corev1.Pod) (since, ended metav1.Time) {
	if pod.Status.Phase != corev1.PodPending {
		return since, ended
	}
	for _, s := range pod.Status.InitContainerStatuses {
		if end := s.State.Terminated; end != nil && end.ExitCode == 0 {
			ended = laterOf(ended, laterOf(end.FinishedAt, pod.CreationTimestamp))
		}
	}
	for _, s := range pod.Status.InitContainerStatuses {
		switch {
		case isSidecar(pod, s.Name):
		case s.State.Running != nil && s.RestartCount == 0:
			since = laterOf(s.State.Running.StartedAt, pod.CreationTimestamp)
		case s.State.Running != nil, crashes(s), hasFailed(s):
			since = laterOf(ended, laterOf(ptr.Deref(pod.Status.StartTime, metav1.Time{}), pod.CreationTimestamp))
		}
	}
	return since, ended
}

// hasFailed: its kubelet has not started it again yet.
func hasFailed(c corev1.ContainerStatus) bool {
	return c.State.Terminated != nil && c.State.Terminated.ExitCode != 0
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

// slimInit leaves what initOf and crashLoopOf read.
func (in *interner) slimInit(pod, slim *corev1.Pod) {
	since, ended := initOf(pod)
	if !ended.IsZero() {
		slim.Status.InitContainerStatuses = append(slim.Status.InitContainerStatuses,
			corev1.ContainerStatus{State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{FinishedAt: ended}}})
	}
	if i := slices.IndexFunc(pod.Status.InitContainerStatuses, crashes); i >= 0 && pod.Status.Phase == corev1.PodPending {
		crash := in.slimCrash(pod.Status.InitContainerStatuses[i])
		slim.Status.InitContainerStatuses = append(slim.Status.InitContainerStatuses, crash)
		if !isSidecar(pod, crash.Name) {
			return
		}
		slim.Spec.InitContainers = []corev1.Container{{Name: crash.Name, RestartPolicy: ptr.To(corev1.ContainerRestartPolicyAlways)}}
	}
	if !since.IsZero() {
		slim.Status.InitContainerStatuses = append(slim.Status.InitContainerStatuses,
			corev1.ContainerStatus{State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: since}}})
	}
}
