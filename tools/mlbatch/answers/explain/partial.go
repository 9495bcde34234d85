// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// least is the least with which a pod set can be admitted: Kueue may admit fewer pods than wanted, down to minCount.
func (o Objects) least(r kueue.PodSetRequest) corev1.ResourceList {
	i := slices.IndexFunc(o.Workload.Spec.PodSets, func(p kueue.PodSet) bool { return p.Name == r.Name })
	if i < 0 || o.Workload.Spec.PodSets[i].MinCount == nil || o.Workload.Spec.PodSets[i].Count <= 0 {
		return r.Resources
	}
	podSet, least := o.Workload.Spec.PodSets[i], corev1.ResourceList{}
	for name, amount := range r.Resources {
		share := float64(*podSet.MinCount) / float64(podSet.Count)
		least[name] = *resource.NewMilliQuantity(int64(float64(amount.MilliValue())*min(share, 1)), amount.Format)
	}
	return least
}
