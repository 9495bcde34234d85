// SPDX-License-Identifier: Apache-2.0

// Package recount counts pods, and what Kueue has counted for them, without looking at who owns what. It is a witness
// beside mlbatch audit, which follows owners.
package recount

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	resourcehelper "k8s.io/component-helpers/resource"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// GPU is the device that is counted.
const GPU = corev1.ResourceName("nvidia.com/gpu")

// Count is a number of pods, and of their devices.
type Count struct {
	Pods    int
	Devices int64
}

// Exceeds reports whether there is more of anything.
func (c Count) Exceeds(other Count) bool { return c.Pods > other.Pods || c.Devices > other.Devices }

// Alive counts pods that have not ended and are not being deleted.
func Alive(pods []corev1.Pod) (c Count) {
	for _, p := range pods {
		if p.DeletionTimestamp != nil || p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed {
			continue
		}
		c.Pods++
		requests := resourcehelper.PodRequests(&p, resourcehelper.PodResourcesOptions{})
		c.Devices += requests.Name(GPU, "").Value()
	}
	return c
}

// Reserved is what Kueue has counted and reserved.
func Reserved(workloads []kueue.Workload) (c Count) {
	for _, w := range workloads {
		if w.Status.Admission == nil || meta.IsStatusConditionTrue(w.Status.Conditions, kueue.WorkloadFinished) {
			continue
		}
		for _, assignment := range w.Status.Admission.PodSetAssignments {
			if assignment.Count != nil {
				c.Pods += int(*assignment.Count)
			}
			usage := assignment.ResourceUsage[GPU]
			c.Devices += usage.Value()
		}
	}
	return c
}
