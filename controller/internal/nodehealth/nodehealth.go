// SPDX-License-Identifier: Apache-2.0

// Package nodehealth answers one question: which resources of a node are in such a state
// that pods which use them have to leave? It looks at a node and may not talk to anything.
package nodehealth

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// Rules say, by resource, what means that it is unhealthy, and how badly.
type Rules map[string][]corev1.Taint

// sources are where a node may say what a rule is about. Another one, such as the taints or
// the conditions of the node, is another line here, and what it reads stays in Slim.
//
// A taint NoExecute is none of them: Kubernetes itself evicts the pods that do not tolerate
// it, and those that do were told to stay.
var sources = []func(*corev1.Node, corev1.Taint) bool{
	labelled, // as Autopilot does
}

func labelled(node *corev1.Node, rule corev1.Taint) bool {
	value, ok := node.Labels[rule.Key]
	return ok && value == rule.Value
}

// MigrationCauses are the resources, in order, whose users have to leave the node.
func (r Rules) MigrationCauses(node *corev1.Node) []corev1.ResourceName {
	var resources []corev1.ResourceName
	for _, resource := range slices.Sorted(maps.Keys(r)) {
		if slices.ContainsFunc(r[resource], func(rule corev1.Taint) bool { return causesMigration(node, rule) }) {
			resources = append(resources, corev1.ResourceName(resource))
		}
	}
	return resources
}

func causesMigration(node *corev1.Node, rule corev1.Taint) bool {
	return rule.Effect == corev1.TaintEffectNoExecute &&
		slices.ContainsFunc(sources, func(shows func(*corev1.Node, corev1.Taint) bool) bool { return shows(node, rule) })
}

// PossibleMigrationCauses are the resources, in order, that have a rule after which nodes have to be left.
func (r Rules) PossibleMigrationCauses() []corev1.ResourceName {
	var resources []corev1.ResourceName
	for _, resource := range slices.Sorted(maps.Keys(r)) {
		if slices.ContainsFunc(r[resource], func(rule corev1.Taint) bool { return rule.Effect == corev1.TaintEffectNoExecute }) {
			resources = append(resources, corev1.ResourceName(resource))
		}
	}
	return resources
}

// Slim is a node of which only that is left which the sources read, and its identity.
func (r Rules) Slim(node *corev1.Node) *corev1.Node {
	slim := &corev1.Node{}
	slim.Name, slim.UID, slim.ResourceVersion = node.Name, node.UID, node.ResourceVersion
	for _, rules := range r {
		for _, rule := range rules {
			if value, ok := node.Labels[rule.Key]; ok {
				if slim.Labels == nil {
					slim.Labels = map[string]string{}
				}
				slim.Labels[rule.Key] = value
			}
		}
	}
	return slim
}
