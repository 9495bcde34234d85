// SPDX-License-Identifier: Apache-2.0

package admissionrules

import "github.com/mlbatch/mlbatch/controller/internal/kinds"

// Undercounted tells whether an AppWrapper that was accepted by an older release gets more pods
// than its pod sets say: today it would be refused, or counted differently. It may go on.
func (d Decoded) Undercounted() bool {
	for i, template := range d.Templates {
		if template == nil || i >= len(d.AppWrapper.Status.ComponentStatus) {
			continue
		}
		kind := kinds.For(template.GroupVersionKind())
		if kind.Uncounted(template) != nil {
			return true
		}
		counted, now := 0, 0
		for _, p := range d.AppWrapper.Status.ComponentStatus[i].PodSets {
			counted += int(p.Count())
		}
		podSets, err := kind.InferPodSets(template)
		for _, p := range podSets {
			now += int(p.Count())
		}
		if err == nil && now > counted {
			return true
		}
	}
	return false
}
