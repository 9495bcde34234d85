// SPDX-License-Identifier: Apache-2.0

package appwrapper

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// backOff is why a container waits whose program has crashed.
const backOff = "CrashLoopBackOff"

// crashLoopOf is the first container of a running pod whose program has crashed, and since when it runs again; zero if
// it waits for that.
func crashLoopOf(pod *corev1.Pod) (container string, runsSince time.Time) {
	i := slices.IndexFunc(pod.Status.ContainerStatuses, crashes)
	if i < 0 || pod.Status.Phase != corev1.PodRunning {
		return "", time.Time{}
	}
	c := pod.Status.ContainerStatuses[i]
	if c.State.Running != nil {
		runsSince = c.State.Running.StartedAt.Time
	}
	return c.Name, runsSince
}

// crashes: the kubelet waits before it starts the container again, or has started it again after a crash.
func crashes(c corev1.ContainerStatus) bool {
	if c.State.Waiting != nil {
		return c.State.Waiting.Reason == backOff
	}
	ended := c.LastTerminationState.Terminated
	return c.State.Running != nil && c.RestartCount > 0 && ended != nil && ended.ExitCode != 0
}

// slimCrash leaves what crashLoopOf reads.
func (in *interner) slimCrash(whole corev1.ContainerStatus) corev1.ContainerStatus {
	slim := corev1.ContainerStatus{Name: intern(in, whole.Name), RestartCount: 1}
	if whole.State.Waiting != nil {
		slim.State.Waiting = &corev1.ContainerStateWaiting{Reason: backOff}
		return slim
	}
	slim.State.Running = &corev1.ContainerStateRunning{StartedAt: whole.State.Running.StartedAt}
	slim.LastTerminationState.Terminated = &corev1.ContainerStateTerminated{ExitCode: whole.LastTerminationState.Terminated.ExitCode}
	return slim
}
