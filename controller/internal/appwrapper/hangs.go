// SPDX-License-Identifier: Apache-2.0

package appwrapper

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// notReadySince reads what hangOf has left.
func notReadySince(pod *corev1.Pod) time.Time {
	if c, hangs := hangOf(pod); hangs {
		return c.LastTransitionTime.Time
	}
	return time.Time{}
}

// hangOf is the condition of a pod that its readiness probes call not ready, with the time since then. It
// is ContainersReady, which only the kubelet writes: Ready is False, too, while the node is silent. One
// without containers is slim already.
func hangOf(pod *corev1.Pod) (corev1.PodCondition, bool) {
	i := slices.IndexFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == corev1.ContainersReady })
	if i < 0 || pod.Status.Phase != corev1.PodRunning || pod.Status.Conditions[i].Status == corev1.ConditionTrue {
		return corev1.PodCondition{}, false
	}
	c := pod.Status.Conditions[i]
	if len(pod.Spec.Containers) > 0 {
		if !probesSaySo(pod, c.LastTransitionTime.Time) {
			return corev1.PodCondition{}, false
		}
		c.LastTransitionTime = toldAt(pod, begunAt(pod, c.LastTransitionTime))
	}
	return corev1.PodCondition{Type: c.Type, Status: c.Status, LastTransitionTime: c.LastTransitionTime}, true
}

// probesSaySo: the containers that are not ready have a readiness probe. If another one is not ready, or one
// has ended, it may be because of that one, so since when the others are not is not known.
func probesSaySo(pod *corev1.Pod, since time.Time) bool {
	unready := func(s corev1.ContainerStatus) bool { return !s.Ready }
	if slices.ContainsFunc(pod.Status.InitContainerStatuses, unready) {
		return false
	}
	found := false
	for _, s := range pod.Status.ContainerStatuses {
		if s.Ready {
			continue
		}
		found = true
		if !slices.ContainsFunc(pod.Spec.Containers, func(c corev1.Container) bool { return c.Name == s.Name && mayHang(c, s, since) }) {
			return false
		}
	}
	return found
}

// mayHang: this container, which is not ready since then, may hang. One that is to run again does not. One
// with a startup probe still starts until it was ready for the first time.
func mayHang(c corev1.Container, s corev1.ContainerStatus, since time.Time) bool {
	if c.ReadinessProbe == nil || s.State.Running == nil {
		return false
	}
	return c.StartupProbe == nil || since.After(s.State.Running.StartedAt.Time)
}

// begunAt is when the last of the containers that are not ready began, if that was later: the condition is
// older than a container whose image was pulled for long, or that was started again.
func begunAt(pod *corev1.Pod, since metav1.Time) metav1.Time {
	for _, s := range pod.Status.ContainerStatuses {
		if !s.Ready && s.State.Running != nil && since.Before(&s.State.Running.StartedAt) {
			since = s.State.Running.StartedAt
		}
	}
	return since
}

// toldAt is when the API server was told of a condition, by its own clock; the clock of a node may be wrong.
// Another change of the status by the kubelet makes it later, and an alarm with it, but never earlier.
func toldAt(pod *corev1.Pod, otherwise metav1.Time) metav1.Time {
	for _, f := range pod.ManagedFields {
		if f.Subresource == "status" && f.Time != nil && f.FieldsV1 != nil && strings.Contains(f.FieldsV1.GetRawString(), string(corev1.ContainersReady)) {
			return *f.Time
		}
	}
	return otherwise
}
