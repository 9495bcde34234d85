// SPDX-License-Identifier: Apache-2.0

package nodehealth

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// rejections are the reasons with which a kubelet fails a pod although nothing is wrong with the
// pod. Other pods that it does not accept, such as those with a forbidden sysctl, would be refused
// on any node.
var rejections = []string{
	"UnexpectedAdmissionError", // a device plugin did not give the devices
	"TopologyAffinityError",    // the devices are not next to each other
	"NodeAffinity",             // the labels of the node have changed
	"NodePorts",                // a port is in use
	"InvalidNodeInfo",
	"NodeShutdown",
	"Terminated", // in a shutdown of the node
}

// Rejection is why the node of a failed pod did not let it run, if it did not.
func Rejection(pod *corev1.Pod) (Cause, bool) {
	reason := pod.Status.Reason
	rejected := slices.Contains(rejections, reason) || strings.HasPrefix(reason, "OutOf") || reason == evicted && !HasRun(pod)
	return Cause{PodRejected, reason}, rejected && pod.Status.Phase == corev1.PodFailed
}

// HasRun tells whether a pod has run. Then it may have been evicted because of what it used itself.
func HasRun(pod *corev1.Pod) bool {
	return slices.ContainsFunc(slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses), func(c corev1.ContainerStatus) bool {
		return c.State.Running != nil || c.State.Terminated != nil || c.LastTerminationState.Terminated != nil
	})
}
