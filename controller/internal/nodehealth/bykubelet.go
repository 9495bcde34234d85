// SPDX-License-Identifier: Apache-2.0

package nodehealth

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// evicted is the reason with which a kubelet fails a pod that it evicts.
const evicted = "Evicted"

// byKubelets are what kubelets say of such pods, and what is left of that. Amounts and names are not: they
// would make each message different. What is left contains the words, so that it is found in slim pods, too.
var byKubelets = []struct{ words, says string }{
	{"The node was low on resource: memory", "The node was low on resource: memory"},
	{"The node was low on resource: ephemeral-storage", "The node was low on resource: ephemeral-storage"},
	{"The node was low on resource: inodes", "The node was low on resource: inodes"},
	{"The node was low on resource: pids", "The node was low on resource: pids"},
	{"The node had condition", "The node had condition"},
	{"exceeded its local ephemeral storage limit", "a container exceeded its local ephemeral storage limit"},
	{"exceeds the total limit of containers", "its local ephemeral storage exceeds the total limit of containers"},
	{"Usage of EmptyDir volume", "Usage of EmptyDir volume exceeds its limit"},
}

// EvictionByKubelet is why the kubelet of a failed pod has evicted it, if it has. It is empty if the kubelet says
// something unknown, or nothing.
func EvictionByKubelet(pod *corev1.Pod) (why string, byKubelet bool) {
	if pod.Status.Phase != corev1.PodFailed || pod.Status.Reason != evicted {
		return "", false
	}
	for _, e := range byKubelets {
		if strings.Contains(pod.Status.Message, e.words) {
			return e.says, true
		}
	}
	return "", true
}
