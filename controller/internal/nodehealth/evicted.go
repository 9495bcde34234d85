// SPDX-License-Identifier: Apache-2.0

package nodehealth

import (
	"time"

	corev1 "k8s.io/api/core/v1"
)

// evictions are the reasons, in the condition DisruptionTarget, with which Kubernetes removes pods
// from a node that they must leave. Pods give way to more important ones for others, and the kubelet
// ends some because of what they use themselves.
var evictions = map[string]Cause{
	"DeletionByTaintManager": {PodEvicted, "DeletionByTaintManager"},
	"EvictionByEvictionAPI":  {PodEvicted, "EvictionByEvictionAPI"}, // as in a drain
	"DeletionByPodGC":        Gone()[0].Cause,
}

// Eviction is why Kubernetes evicts a pod from its node, and since when. It says only that Kubernetes
// tries, and not that the pod goes.
func Eviction(pod *corev1.Pod) (cause Cause, since time.Time, evicted bool) {
	for _, c := range pod.Status.Conditions {
		cause, known := evictions[c.Reason]
		if known && c.Type == corev1.DisruptionTarget && c.Status == corev1.ConditionTrue {
			return cause, c.LastTransitionTime.Time, true
		}
	}
	return Cause{}, time.Time{}, false
}

// Attributes tells whether an eviction at one time may be the cause of a failure at another: the
// others of a gang may need some time to fail without the pod.
func Attributes(evicted, failed time.Time) bool {
	return !failed.After(evicted.Add(attribution))
}
