// SPDX-License-Identifier: Apache-2.0

package slackquota

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/mlbatch/mlbatch/controller/internal/nodehealth"
)

// Missing is what the nodes of each flavor had and cannot give to new pods.
type Missing map[kueue.ResourceFlavorReference]corev1.ResourceList

// Find adds up what is missing. A node may belong to several flavors: each lacks what it lacks.
func Find(rules nodehealth.Rules, flavors []kueue.ResourceFlavor, nodes []corev1.Node, devices Devices) Missing {
	missing := Missing{}
	for i := range nodes {
		lacks := unusable(rules, &nodes[i], devices)
		if len(lacks) == 0 {
			continue
		}
		for j := range flavors {
			if belongs(rules, &nodes[i], &flavors[j]) {
				missing.add(kueue.ResourceFlavorReference(flavors[j].Name), lacks)
			}
		}
	}
	return missing
}

func (m Missing) add(flavor kueue.ResourceFlavorReference, lacks corev1.ResourceList) {
	if m[flavor] == nil {
		m[flavor] = corev1.ResourceList{}
	}
	for name, quantity := range lacks {
		sum := m[flavor][name]
		sum.Add(quantity)
		m[flavor][name] = sum
	}
}

// unusable is, by resource, what the node had while it was healthy, less what new pods can get.
func unusable(rules nodehealth.Rules, node *corev1.Node, devices Devices) corev1.ResourceList {
	lacks := corev1.ResourceList{}
	for name, stock := range Stocks(rules, node, devices) {
		if lost := stock.lost(); lost.Sign() > 0 && name != corev1.ResourcePods {
			lacks[name] = lost
		}
	}
	return lacks
}

// belongs: pods that Kueue gives the flavor can be placed on the node, apart from its health. Kueue
// adds the labels and tolerations of the flavor to them, and they tolerate its taints.
func belongs(rules nodehealth.Rules, node *corev1.Node, flavor *kueue.ResourceFlavor) bool {
	return labelledFor(node, flavor) && !slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool {
		return t.Effect != corev1.TaintEffectPreferNoSchedule && !rules.IsSign(t) && !accepts(flavor, t)
	})
}

func accepts(flavor *kueue.ResourceFlavor, taint corev1.Taint) bool {
	return nodehealth.Tolerates(flavor.Spec.Tolerations, taint) ||
		slices.ContainsFunc(flavor.Spec.NodeTaints, func(t corev1.Taint) bool {
			return t.Key == taint.Key && t.Value == taint.Value && t.Effect == taint.Effect
		})
}
