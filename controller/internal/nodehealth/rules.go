// SPDX-License-Identifier: Apache-2.0

package nodehealth

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/mlbatch/mlbatch/controller/internal/podtemplate"
)

// Rules say how a node shows that it is unhealthy, and which pods must leave it then.
type Rules struct {
	// Labels has, by resource, the node labels that show it; only those with the effect
	// NoExecute count here.
	//
	// A taint NoExecute does not count as such a label: Kubernetes evicts the pods that do not
	// tolerate it, and those that do are meant to stay.
	Labels map[string][]corev1.Taint
	Listed
	NotReady NotReady
	// Monitored: nodes are to blame for the pods that they reject, and for those that Kubernetes
	// evicts from them.
	Monitored bool
}

// NotReady says whether all pods leave a node of which the node controller says that it is not
// ready or unreachable, and for how long the node may come back before.
type NotReady struct {
	Leave bool
	Grace time.Duration
}

// reads tells whether a taint is the node controller's verdict.
func (n NotReady) reads(t corev1.Taint) bool {
	return n.Leave && t.Effect == corev1.TaintEffectNoExecute && (t.Key == corev1.TaintNodeNotReady || t.Key == corev1.TaintNodeUnreachable)
}

// Listed are the rules that an administrator lists besides labels.
type Listed struct {
	Conditions []ConditionRule `json:"conditions"`
	Taints     []TaintRule     `json:"taints"`
	// DevicesMissing is about nodes of which fewer devices are allocatable than there are.
	DevicesMissing []Reaction `json:"devicesMissing"`
}

// Reaction is what follows from a rule, and for which pods.
type Reaction struct {
	// Resources are those that the pods request, or parts of them, or only AllPods.
	Resources []corev1.ResourceName `json:"resources"`
	// Effect is NoExecute: leave now.
	Effect corev1.TaintEffect `json:"effect"`
}

// isAbout: the resource is one of the rule's, or part of one.
func (r Reaction) isAbout(name corev1.ResourceName) bool {
	return slices.ContainsFunc(r.Resources, func(resource corev1.ResourceName) bool { return podtemplate.IsOf(name, resource) })
}

// ConditionRule is about nodes with a condition of this type and status.
type ConditionRule struct {
	Type   corev1.NodeConditionType `json:"type"`
	Status corev1.ConditionStatus   `json:"status"`
	Reaction
}

// TaintRule is about nodes with a taint of this key.
type TaintRule struct {
	Key string `json:"key"`
	// Value is any if nil.
	Value *string `json:"value"`
	// TaintEffect is that of the taint; any if empty.
	TaintEffect corev1.TaintEffect `json:"taintEffect"`
	Reaction
}

func (r TaintRule) matches(t corev1.Taint) bool {
	return t.Key == r.Key && (r.Value == nil || t.Value == *r.Value) && (r.TaintEffect == "" || t.Effect == r.TaintEffect)
}

// reactions are those of all listed rules.
func (l Listed) reactions() []Reaction {
	var all []Reaction
	for _, rule := range l.Conditions {
		all = append(all, rule.Reaction)
	}
	for _, rule := range l.Taints {
		all = append(all, rule.Reaction)
	}
	return append(all, l.DevicesMissing...)
}

// None tells whether there is no rule.
func (l Listed) None() bool {
	return len(l.reactions()) == 0
}
