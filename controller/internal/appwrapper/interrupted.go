// SPDX-License-Identifier: Apache-2.0

package appwrapper

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

// interruptedAt is from when on something else than its program may have ended a pod; zero if nothing else can have.
// A kubelet that shuts down says only at the end that it disrupts its pods. Owners delete the other pods in the same
// second in which one has failed, and timestamps are in whole seconds, so a deletion explains only what comes later.
// What had ended by itself when it was deleted was not interrupted; what exits with 0 because it was deleted was.
func interruptedAt(pod *corev1.Pod) time.Time {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.DisruptionTarget && c.Status == corev1.ConditionTrue {
			return pod.CreationTimestamp.Time
		}
	}
	if pod.DeletionTimestamp.IsZero() {
		return time.Time{}
	}
	deleted := pod.DeletionTimestamp.Add(-time.Second * time.Duration(ptr.Deref(pod.DeletionGracePeriodSeconds, 0)))
	if hasEnded := pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded; hasEnded && !deleted.Before(endOf(pod)) {
		return time.Time{}
	}
	return deleted.Add(time.Second)
}
