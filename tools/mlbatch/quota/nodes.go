// SPDX-License-Identifier: Apache-2.0

package quota

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	helper "k8s.io/component-helpers/resource"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/nodesigns"
)

// PodSetLabel is Kueue's label for the pod set of a Workload that a pod belongs to.
const PodSetLabel = "kueue.x-k8s.io/podset"

// UsesNode reports whether a pod occupies a node. A terminating pod does until it has ended.
func UsesNode(p *corev1.Pod) bool {
	return p.Spec.NodeName != "" && p.Status.Phase != corev1.PodSucceeded && p.Status.Phase != corev1.PodFailed
}

// Queued reports whether a pod belongs to work in a queue. Kueue labels the pods of what it has admitted, and the
// AppWrapper controller its own.
func Queued(p *corev1.Pod) bool {
	for _, label := range []string{PodSetLabel, v1beta2.AppWrapperLabel, v1beta2.QueueNameLabel} {
		if p.Labels[label] != "" {
			return true
		}
	}
	return false
}

// Requests are those of a pod.
func Requests(p *corev1.Pod) corev1.ResourceList {
	return helper.PodRequests(p, helper.PodResourcesOptions{})
}

// Used is what pods request of each node.
func Used(pods []corev1.Pod) map[string]corev1.ResourceList {
	return used(pods, func(*corev1.Pod) bool { return true })
}

// UsedOutside is what pods that are in no queue request of each node.
func UsedOutside(pods []corev1.Pod) map[string]corev1.ResourceList {
	return used(pods, func(p *corev1.Pod) bool { return !Queued(p) })
}

func used(pods []corev1.Pod, counts func(*corev1.Pod) bool) map[string]corev1.ResourceList {
	all := map[string]corev1.ResourceList{}
	for i := range pods {
		p := &pods[i]
		if !UsesNode(p) || !counts(p) {
			continue
		}
		if all[p.Spec.NodeName] == nil {
			all[p.Spec.NodeName] = corev1.ResourceList{}
		}
		for name, amount := range Requests(p) {
			sum := all[p.Spec.NodeName][name]
			sum.Add(amount)
			all[p.Spec.NodeName][name] = sum
		}
	}
	return all
}

// Free is what is usable and not used.
func Free(usable, used resource.Quantity) resource.Quantity {
	free := usable.DeepCopy()
	if free.Sub(used); free.Sign() < 0 {
		return resource.Quantity{Format: free.Format}
	}
	return free
}

// Stranded are the free devices of a node of which others are used. Work that needs a whole node cannot have them.
func Stranded(name corev1.ResourceName, usable, used resource.Quantity) resource.Quantity {
	if !nodesigns.IsDevice(name) || used.Sign() == 0 {
		return resource.Quantity{}
	}
	return Free(usable, used)
}
