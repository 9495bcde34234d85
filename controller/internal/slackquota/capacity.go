// SPDX-License-Identifier: Apache-2.0

package slackquota

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// FlavorCapacity is what pods can get in a flavor, as a CapacityProvider of Kueue has it.
type FlavorCapacity struct {
	Name      kueue.ResourceFlavorReference `json:"name"`
	Resources corev1.ResourceList           `json:"resources"`
}

// Capacity is what Kueue is told of these flavors: what is usable. A resource that it was told of before, and that
// no node has any more, is zero: of what it is not told, Kueue takes the whole quota in the spec.
func Capacity(flavors []kueue.ResourceFlavorReference, supplies Supplies, told []FlavorCapacity) []FlavorCapacity {
	before := map[kueue.ResourceFlavorReference]corev1.ResourceList{}
	for _, t := range told {
		before[t.Name] = t.Resources
	}
	var capacity []FlavorCapacity
	for _, flavor := range flavors {
		usable := corev1.ResourceList{}
		for name, quantity := range before[flavor] {
			usable[name] = resource.Quantity{Format: quantity.Format}
		}
		for name, supply := range supplies[flavor] {
			usable[name] = supply.Usable
		}
		if len(usable) > 0 {
			capacity = append(capacity, FlavorCapacity{flavor, usable})
		}
	}
	return capacity
}
