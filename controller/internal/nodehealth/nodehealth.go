// SPDX-License-Identifier: Apache-2.0

// Package nodehealth answers one question: which resources of a node are so unhealthy that
// pods that use them must migrate? It looks at a node and may not talk to anything.
package nodehealth

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// Rules say, by resource, how a node shows that it is unhealthy, and what follows.
type Rules map[string][]corev1.Taint

// sources are where a node may show what a rule says. To add one, such as the taints or
// conditions of the node, add a line here and keep in Slim what it reads.
//
// A taint NoExecute is none of them: Kubernetes evicts the pods that do not tolerate it, and
// those that do are meant to stay.
var sources = []func(*corev1.Node, corev1.Taint) bool{
	labelled, // as Autopilot does
}

func labelled(node *corev1.Node, rule corev1.Taint) bool {
	value, ok := node.Labels[rule.Key]
	return ok && value == rule.Value
}

// MigrationCauses are the resources, in order, whose pods must migrate from the node.
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

// PossibleMigrationCauses are the resources, in order, with a rule that may cause a migration.
func (r Rules) PossibleMigrationCauses() []corev1.ResourceName {
	var resources []corev1.ResourceName
	for _, resource := range slices.Sorted(maps.Keys(r)) {
		if slices.ContainsFunc(r[resource], func(rule corev1.Taint) bool { return rule.Effect == corev1.TaintEffectNoExecute }) {
			resources = append(resources, corev1.ResourceName(resource))
		}
	}
	return resources
}

// Slim is a node reduced to its identity and what the sources read.
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
