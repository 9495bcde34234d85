// SPDX-License-Identifier: Apache-2.0

package appwrapper

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// backOff is why a container waits whose program has crashed.
const backOff = "CrashLoopBackOff"

// crashLoopOf is the first container or side-car of a running pod whose program has crashed, or the init container or
// side-car of a pending one, and since when it runs again; zero if it does not.
func crashLoopOf(pod *corev1.Pod) (container string, runsSince time.Time) {
	var lists [][]corev1.ContainerStatus
	switch pod.Status.Phase {
	case corev1.PodRunning:
		lists = [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses}
	case corev1.PodPending:
		lists = [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses}
	}
	for _, statuses := range lists {
		i := slices.IndexFunc(statuses, crashes)
		if i < 0 {
			continue
		}
		if running := statuses[i].State.Running; running != nil {
			runsSince = running.StartedAt.Time
		}
		return statuses[i].Name, runsSince
	}
	return "", time.Time{}
}

// backOffForgets is how long a program has to run until its kubelet starts it again at once, whatever it exits with.
const backOffForgets = 10 * time.Minute

// crashes tells, for a container of a running pod, that its program has crashed and its kubelet has started it again,
// or is going to. Between a crash and the back-off, the container is terminated for some seconds. A program that exits
// with 0 after a short time, is started again as slowly as one that crashes.
func crashes(c corev1.ContainerStatus) bool {
	ended := c.LastTerminationState.Terminated
	switch {
	case c.State.Waiting != nil: // a pod whose containers have not all been started is pending
		return c.State.Waiting.Reason == backOff || c.RestartCount > 0
	case c.RestartCount == 0:
		return false
	case c.State.Terminated != nil:
		return c.State.Terminated.ExitCode != 0
	case c.State.Running == nil || ended == nil:
		return false
	}
	ran := ended.FinishedAt.Sub(ended.StartedAt.Time)
	return ended.ExitCode != 0 || !ended.StartedAt.IsZero() && ran < backOffForgets
}

// slimCrashes leaves what crashLoopOf reads.
func (in *interner) slimCrashes(whole []corev1.ContainerStatus) (slim []corev1.ContainerStatus) {
	for i := range whole {
		if crashes(whole[i]) {
			slim = append(slim, in.slimCrash(whole[i]))
		}
	}
	return slim
}

func (in *interner) slimCrash(whole corev1.ContainerStatus) corev1.ContainerStatus {
	slim := corev1.ContainerStatus{Name: intern(in, whole.Name), RestartCount: 1}
	if whole.State.Running == nil {
		slim.State.Waiting = &corev1.ContainerStateWaiting{Reason: backOff}
		return slim
	}
	slim.State.Running = &corev1.ContainerStateRunning{StartedAt: whole.State.Running.StartedAt}
	slim.LastTerminationState.Terminated = &corev1.ContainerStateTerminated{ExitCode: 1}
	return slim
}
