// SPDX-License-Identifier: Apache-2.0

package appwrapper

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/mlbatch/mlbatch/controller/internal/lifecycle"
	"github.com/mlbatch/mlbatch/controller/internal/nodehealth"
)

// deadlineExceeded is the reason of a pod whose own deadline has passed.
const deadlineExceeded = "DeadlineExceeded"

// failures are how a failed pod ended. Those of a pod that was evicted are the doing of its kubelet.
func failures(pod *corev1.Pod) []lifecycle.Failure {
	if pod.Status.Phase != corev1.PodFailed {
		return nil
	}
	if why, byKubelet := nodehealth.EvictionByKubelet(pod); byKubelet {
		return []lifecycle.Failure{{Cause: lifecycle.Evicted, Why: why, At: endOf(pod)}}
	}
	var all []lifecycle.Failure
	for _, c := range slices.Concat(pod.Status.ContainerStatuses, pod.Status.InitContainerStatuses) {
		if ended := c.State.Terminated; failed(ended) {
			f := lifecycle.Failure{Container: c.Name, ExitCode: ended.ExitCode, At: ended.FinishedAt.Time, Began: ended.StartedAt.Time, LastWords: ended.Message}
			if ended.Reason == string(lifecycle.OOMKilled) {
				f.Cause = lifecycle.OOMKilled
			}
			all = append(all, f)
		}
	}
	return all
}

// failed: a container may end with 0 although a process of it was killed.
func failed(ended *corev1.ContainerStateTerminated) bool {
	return ended != nil && (ended.ExitCode != 0 || ended.Reason == string(lifecycle.OOMKilled))
}

// slimFailures leaves of a failed pod what failures read.
func (in *interner) slimFailures(pod, slim *corev1.Pod) {
	if pod.Status.Phase != corev1.PodFailed {
		return
	}
	for _, c := range pod.Status.InitContainerStatuses {
		if failed(c.State.Terminated) {
			slim.Status.InitContainerStatuses = append(slim.Status.InitContainerStatuses, in.slimEnd(c))
		}
	}
	if pod.Status.Reason == deadlineExceeded {
		slim.Status.Reason = deadlineExceeded
	}
	why, byKubelet := nodehealth.EvictionByKubelet(pod)
	if !byKubelet {
		return
	}
	slim.Status.Reason, slim.Status.Message = intern(in, pod.Status.Reason), why
	if nodehealth.HasRun(pod) && !nodehealth.HasRun(slim) {
		ran := corev1.ContainerStatus{State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}}
		slim.Status.InitContainerStatuses = append(slim.Status.InitContainerStatuses, ran)
	}
}

// slimEnd leaves how a container ended. Its name is only kept if it failed, which few do.
func (in *interner) slimEnd(whole corev1.ContainerStatus) corev1.ContainerStatus {
	end := whole.State.Terminated
	ended := &corev1.ContainerStateTerminated{ExitCode: end.ExitCode, FinishedAt: end.FinishedAt}
	slim := corev1.ContainerStatus{State: corev1.ContainerState{Terminated: ended}}
	if failed(end) {
		slim.Name = intern(in, whole.Name)
		if end.Reason == string(lifecycle.OOMKilled) {
			ended.Reason = string(lifecycle.OOMKilled)
		}
	}
	return slim
}
