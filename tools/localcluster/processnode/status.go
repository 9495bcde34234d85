// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// state is what a worker knows about its pod.
type state struct {
	ip, hostIP string
	// began is when the node accepted the pod.
	began metav1.Time
	// now is the state of its container, before the state of the previous container.
	now, before corev1.ContainerState
	restarts    int32
	ready       bool
}

// ownConditions are the conditions that a node sets.
var ownConditions = []corev1.PodConditionType{
	corev1.PodReadyToStartContainers, corev1.PodInitialized, corev1.ContainersReady, corev1.PodReady,
}

// status returns the status of a pod at a time. It keeps the conditions that others set, and the
// times of unchanged conditions.
func status(pod *corev1.Pod, last corev1.PodStatus, s state, at metav1.Time) corev1.PodStatus {
	phase := corev1.PodPending
	if s.now.Running != nil || s.restarts > 0 {
		phase = corev1.PodRunning
	}
	started := s.now.Running != nil
	ready := s.ready && started
	container := pod.Spec.Containers[0]
	out := *last.DeepCopy()
	out.Phase, out.StartTime = phase, &s.began
	out.HostIP, out.HostIPs = s.hostIP, []corev1.HostIP{{IP: s.hostIP}}
	out.PodIP, out.PodIPs = s.ip, []corev1.PodIP{{IP: s.ip}}
	out.ContainerStatuses = []corev1.ContainerStatus{{
		Name: container.Name, Image: container.Image, ImageID: container.Image, RestartCount: s.restarts,
		State: s.now, LastTerminationState: s.before, Ready: ready, Started: &started,
	}}
	out.Conditions = nil
	for _, c := range last.Conditions {
		if !slices.Contains(ownConditions, c.Type) {
			out.Conditions = append(out.Conditions, c)
		}
	}
	for _, c := range ownConditions {
		holds := c == corev1.PodInitialized || s.now.Waiting == nil && c == corev1.PodReadyToStartContainers || ready
		out.Conditions = append(out.Conditions, condition(c, holds, last.Conditions, at))
	}
	return out
}

func condition(kind corev1.PodConditionType, holds bool, last []corev1.PodCondition, at metav1.Time) corev1.PodCondition {
	c := corev1.PodCondition{Type: kind, Status: corev1.ConditionFalse, LastTransitionTime: at}
	if holds {
		c.Status = corev1.ConditionTrue
	}
	for _, l := range last {
		if l.Type == kind && l.Status == c.Status {
			c.LastTransitionTime = l.LastTransitionTime
		}
	}
	return c
}
