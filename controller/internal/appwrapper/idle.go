// SPDX-License-Identifier: Apache-2.0

package appwrapper

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
)

// idleSince is since when whoever watches the devices says that a pod does not use its own, and idleSeen is
// when they said so last; zero if they do not.
func idleSince(pod *corev1.Pod) time.Time {
	c, _ := idleCondition(pod)
	return c.LastTransitionTime.Time
}

func idleSeen(pod *corev1.Pod) time.Time {
	c, _ := idleCondition(pod)
	return c.LastProbeTime.Time
}

// idleCondition is what slimPodConditions leaves.
func idleCondition(pod *corev1.Pod) (corev1.PodCondition, bool) {
	for _, c := range pod.Status.Conditions {
		if c.Type == v1beta2.PodIdleCondition && c.Status == corev1.ConditionTrue {
			return corev1.PodCondition{Type: c.Type, Status: c.Status, LastTransitionTime: c.LastTransitionTime, LastProbeTime: c.LastProbeTime}, true
		}
	}
	return corev1.PodCondition{}, false
}
