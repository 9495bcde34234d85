// SPDX-License-Identifier: Apache-2.0

package nodehealth

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestEvictionByKubelet(t *testing.T) {
	const low = "The node was low on resource: "
	for message, want := range map[string]string{
		low + "memory. Threshold quantity: 100Mi, available: 20Ki. Container main was using 2Gi, request is 0. ": low + "memory",
		low + "ephemeral-storage. Threshold quantity: 10Gi, available: 9Gi. ":                                    low + "ephemeral-storage",
		low + "inodes. ": low + "inodes",
		low + "pids. ":   low + "pids",
		"The node had condition: [DiskPressure]. ":                                      "The node had condition",
		`Container main exceeded its local ephemeral storage limit "1Gi". `:             "a container exceeded its local ephemeral storage limit",
		"Pod ephemeral local storage usage exceeds the total limit of containers 1Gi. ": "its local ephemeral storage exceeds the total limit of containers",
		`Usage of EmptyDir volume "scratch" exceeds the limit "1Gi". `:                  "Usage of EmptyDir volume exceeds its limit",
		"a kubelet of another year":                                                     "",
		"":                                                                              "",
	} {
		pod := &corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodFailed, Reason: "Evicted", Message: message}}
		why, byKubelet := EvictionByKubelet(pod)
		if why != want || !byKubelet {
			t.Errorf("%q is %q, %t; want %q", message, why, byKubelet, want)
		}
		pod.Status.Message = why
		if again, byKubelet := EvictionByKubelet(pod); again != want || !byKubelet {
			t.Errorf("%q, which is all that is left of %q, is %q, %t", why, message, again, byKubelet)
		}
	}
	for _, status := range []corev1.PodStatus{
		{Phase: corev1.PodRunning, Reason: "Evicted"},
		{Phase: corev1.PodFailed, Reason: "DeadlineExceeded", Message: low + "memory"},
	} {
		if why, byKubelet := EvictionByKubelet(&corev1.Pod{Status: status}); byKubelet || why != "" {
			t.Errorf("%v is an eviction: %q", status, why)
		}
	}
}
