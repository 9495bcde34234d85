// SPDX-License-Identifier: Apache-2.0

package quota

import (
	corev1 "k8s.io/api/core/v1"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/mlbatch/mlbatch/controller/nodesigns"
)

// MostDevices is how many devices the pods of a Workload request in all, of the device that they request most of: GPUs
// and not the one network device beside eight of them.
func MostDevices(w *kueue.Workload) (most int64) {
	sums := map[corev1.ResourceName]int64{}
	for _, podSet := range w.Spec.PodSets {
		for name, amount := range Requests(&corev1.Pod{Spec: podSet.Template.Spec}) {
			if nodesigns.IsDevice(name) {
				sums[name] += amount.Value() * int64(podSet.Count)
				most = max(most, sums[name])
			}
		}
	}
	return most
}
