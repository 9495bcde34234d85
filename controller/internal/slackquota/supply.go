// SPDX-License-Identifier: Apache-2.0

package slackquota

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/mlbatch/mlbatch/controller/internal/nodehealth"
)

// Stock is what one node has of one resource.
type Stock struct {
	// Total is what it had while it was healthy.
	Total resource.Quantity
	// Usable is what new pods, and those that run, can get of it.
	Usable resource.Quantity
	// Cause is why that is less; empty if it is not.
	Cause nodehealth.Source
}

func (s Stock) lost() resource.Quantity {
	lost := s.Total.DeepCopy()
	lost.Sub(s.Usable)
	return lost
}

// causes are why something is unusable, the first that applies. Who repairs a node cordons it as
// well, so that comes last of the signs.
var causes = []nodehealth.Source{
	nodehealth.NodeNotReady, nodehealth.NodeLabel, nodehealth.NodeCondition, nodehealth.NodeTaint, nodehealth.NodeCordoned, nodehealth.DevicesMissing,
}

// Causes are all causes of a Stock.
func Causes() []nodehealth.Source { return slices.Clone(causes) }

// Stocks are what a node has, by resource. One that is being deleted has nothing.
func Stocks(rules nodehealth.Rules, node *corev1.Node, devices Devices) map[corev1.ResourceName]Stock {
	stocks := map[corev1.ResourceName]Stock{}
	if node.DeletionTimestamp != nil {
		return stocks
	}
	signs := rules.Unusable(node)
	for name, had := range devices.had(node) {
		s := Stock{Total: had, Usable: node.Status.Allocatable[name], Cause: causeOf(signs, name)}
		switch {
		case s.Cause != "":
			s.Usable = resource.Quantity{Format: had.Format}
		case s.Usable.Cmp(had) < 0:
			s.Cause = nodehealth.DevicesMissing
		}
		stocks[name] = s
	}
	return stocks
}

// causeOf is why pods get nothing of a resource.
func causeOf(signs []nodehealth.Finding, name corev1.ResourceName) nodehealth.Source {
	for _, cause := range causes {
		if slices.ContainsFunc(signs, func(f nodehealth.Finding) bool {
			return f.Source == cause && f.IsAbout(name)
		}) {
			return cause
		}
	}
	return ""
}

// Supply is what the nodes of a flavor have of a resource.
type Supply struct {
	Total, Usable resource.Quantity
	// Unusable is the rest, by cause.
	Unusable map[nodehealth.Source]resource.Quantity
}

// Supplies are by flavor and resource.
type Supplies map[kueue.ResourceFlavorReference]map[corev1.ResourceName]Supply

// Count adds up what the nodes have on which work in a flavor may run.
func Count(rules nodehealth.Rules, flavors []kueue.ResourceFlavor, nodes []corev1.Node, devices Devices) Supplies {
	all := Supplies{}
	for i := range nodes {
		stocks := Stocks(rules, &nodes[i], devices)
		for j := range flavors {
			if Serves(&nodes[i], &flavors[j]) {
				all.add(kueue.ResourceFlavorReference(flavors[j].Name), stocks)
			}
		}
	}
	return all
}

func (s Supplies) add(flavor kueue.ResourceFlavorReference, stocks map[corev1.ResourceName]Stock) {
	if s[flavor] == nil {
		s[flavor] = map[corev1.ResourceName]Supply{}
	}
	for name, stock := range stocks {
		sum := s[flavor][name]
		sum.Total.Add(stock.Total)
		sum.Usable.Add(stock.Usable)
		if lost := stock.lost(); lost.Sign() > 0 {
			if sum.Unusable == nil {
				sum.Unusable = map[nodehealth.Source]resource.Quantity{}
			}
			lost.Add(sum.Unusable[stock.Cause])
			sum.Unusable[stock.Cause] = lost
		}
		s[flavor][name] = sum
	}
}

// Serves reports whether work in the flavor may run on the node, apart from its health. It ignores taints other
// than those of the control plane: who dedicates nodes to work lets the work tolerate them. So it
// has more nodes than those of which Find takes something from a loan.
func Serves(node *corev1.Node, flavor *kueue.ResourceFlavor) bool {
	return labelledFor(node, flavor) && !slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool {
		return strings.HasPrefix(t.Key, "node-role.kubernetes.io/") && t.Effect != corev1.TaintEffectPreferNoSchedule && !accepts(flavor, t)
	})
}

func labelledFor(node *corev1.Node, flavor *kueue.ResourceFlavor) bool {
	for key, value := range flavor.Spec.NodeLabels {
		if has, ok := node.Labels[key]; !ok || has != value {
			return false
		}
	}
	return true
}
