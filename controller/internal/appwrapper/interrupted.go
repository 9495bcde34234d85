// SPDX-License-Identifier: Apache-2.0

package appwrapper

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

// interruptedAt is from when on something else than its program may have ended a pod; zero if nothing else can have.
// A kubelet that shuts down says only at the end that it disrupts its pods, and that they have failed. Owners delete
// the other pods in the same second in which one has failed, and timestamps are in whole seconds, so a deletion
// explains only what comes later. What had ended by itself before was not interrupted; what exits with 0 because it was
// deleted was.
func interruptedAt(pod *corev1.Pod) time.Time {
	succeeded := pod.Status.Phase == corev1.PodSucceeded
	for _, c := range pod.Status.Conditions {
		disrupts := c.Type == corev1.DisruptionTarget && c.Status == corev1.ConditionTrue
		if disrupts && (!succeeded || c.LastTransitionTime.Time.Before(endOf(pod))) {
			return pod.CreationTimestamp.Time
		}
	}
	if pod.DeletionTimestamp.IsZero() {
		return time.Time{}
	}
	deleted := pod.DeletionTimestamp.Add(-time.Second * time.Duration(ptr.Deref(pod.DeletionGracePeriodSeconds, 0)))
	if hasEnded := pod.Status.Phase == corev1.PodFailed || succeeded; hasEnded && !deleted.Before(endOf(pod)) {
		return time.Time{}
	}
	return deleted.Add(time.Second)
}
