// SPDX-License-Identifier: Apache-2.0

package podtemplate

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
)

// Avoidance keeps pods away from nodes on which a resource that they request is unhealthy.
type Avoidance struct {
	// Taints has, by resource, the node labels that show it, and how strictly to avoid them:
	// NoSchedule and NoExecute require it, PreferNoSchedule prefers it.
	Taints map[string][]corev1.Taint
	// Weight of the preference, from 1 to 100.
	Weight int32
}

// IsOf tells whether devices of this name are devices of the resource, or parts or time slices of
// such: what is wrong with one is wrong with the other. The names are those of NVIDIA's device plugin.
func IsOf(name, resource corev1.ResourceName) bool {
	whole := corev1.ResourceName(strings.TrimSuffix(string(name), ".shared"))
	return name == resource || whole == resource || resource == "nvidia.com/gpu" && strings.HasPrefix(string(name), "nvidia.com/mig-")
}

// AsksFor tells whether any container or init container, or the pod as a whole, requests the
// resource, or parts of it.
func AsksFor(spec *corev1.PodSpec, resource corev1.ResourceName) bool {
	return asks(spec, func(name corev1.ResourceName) bool { return IsOf(name, resource) })
}

// AsksForNamed tells whether the pod requests what has just this name.
func AsksForNamed(spec *corev1.PodSpec, resource corev1.ResourceName) bool {
	return asks(spec, func(name corev1.ResourceName) bool { return name == resource })
}

func asks(spec *corev1.PodSpec, wanted func(corev1.ResourceName) bool) bool {
	for _, container := range slices.Concat(spec.InitContainers, spec.Containers) {
		if some(container.Resources, wanted) {
			return true
		}
	}
	return spec.Resources != nil && some(*spec.Resources, wanted)
}

func some(r corev1.ResourceRequirements, wanted func(corev1.ResourceName) bool) bool {
	for _, list := range []corev1.ResourceList{r.Requests, r.Limits} {
		for name, quantity := range list {
			if wanted(name) && !quantity.IsZero() {
				return true
			}
		}
	}
	return false
}

// avoidNodes adds to the template's node affinity the expressions that it lacks.
func avoidNodes(template map[string]any, e Edit) error {
	if len(e.Avoid.Taints)+len(e.AvoidNodes)+len(e.DislikeNodes) == 0 {
		return nil
	}
	holder, err := child(template, "spec")
	if err != nil {
		return err
	}
	spec := &corev1.PodSpec{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(holder, spec); err != nil {
		return fmt.Errorf("cannot decode the pod spec: %w", err)
	}
	forbidden, advised := e.Avoid.expressions(spec)
	nodes, disliked := names(spec, e.AvoidNodes), names(spec, e.DislikeNodes)
	if len(forbidden)+len(advised)+len(nodes)+len(disliked) == 0 {
		return nil
	}
	affinity := nodeAffinityOf(spec)
	require(affinity, forbidden, nodes)
	prefer(affinity, advised, e.Avoid.Weight)
	dislike(affinity, disliked)
	encoded, err := runtime.DefaultUnstructuredConverter.ToUnstructured(spec.Affinity)
	if err != nil {
		return fmt.Errorf("cannot encode the affinity: %w", err)
	}
	holder["affinity"] = encoded
	return nil
}

func nodeAffinityOf(spec *corev1.PodSpec) *corev1.NodeAffinity {
	if spec.Affinity == nil {
		spec.Affinity = &corev1.Affinity{}
	}
	if spec.Affinity.NodeAffinity == nil {
		spec.Affinity.NodeAffinity = &corev1.NodeAffinity{}
	}
	return spec.Affinity.NodeAffinity
}

// expressions keep pods away from nodes on which a requested resource is unhealthy: one
// expression for each label.
func (a Avoidance) expressions(spec *corev1.PodSpec) (forbidden, advised []corev1.NodeSelectorRequirement) {
	for _, resource := range slices.Sorted(maps.Keys(a.Taints)) {
		if !AsksFor(spec, corev1.ResourceName(resource)) {
			continue
		}
		for _, taint := range a.Taints[resource] {
			if taint.Effect == corev1.TaintEffectPreferNoSchedule {
				advised = exclude(advised, taint)
			} else {
				forbidden = exclude(forbidden, taint)
			}
		}
	}
	return forbidden, advised
}

func exclude(expressions []corev1.NodeSelectorRequirement, taint corev1.Taint) []corev1.NodeSelectorRequirement {
	for i := range expressions {
		if e := &expressions[i]; e.Key == taint.Key {
			if !slices.Contains(e.Values, taint.Value) {
				e.Values = append(e.Values, taint.Value)
			}
			return expressions
		}
	}
	return append(expressions, corev1.NodeSelectorRequirement{
		Key: taint.Key, Operator: corev1.NodeSelectorOpNotIn, Values: []string{taint.Value},
	})
}

// topologyGate is how Kueue holds a pod until it assigns it to a node.
const topologyGate = "kueue.x-k8s.io/topology"

// GetsItsNode tells whether Kueue assigns a pod with these gates to a node.
func GetsItsNode(gates []corev1.PodSchedulingGate) bool {
	return slices.ContainsFunc(gates, func(g corev1.PodSchedulingGate) bool { return g.Name == topologyGate })
}

// names keep pods away from nodes by name: one field for each, as the API server wants it. A pod
// whose node is chosen already could only stay pending.
func names(spec *corev1.PodSpec, nodes []string) []corev1.NodeSelectorRequirement {
	if _, selected := spec.NodeSelector[corev1.LabelHostname]; selected || GetsItsNode(spec.SchedulingGates) || spec.NodeName != "" {
		return nil
	}
	fields := make([]corev1.NodeSelectorRequirement, len(nodes))
	for i, name := range nodes {
		fields[i] = notOn(name)
	}
	return fields
}

func notOn(node string) corev1.NodeSelectorRequirement {
	return corev1.NodeSelectorRequirement{Key: "metadata.name", Operator: corev1.NodeSelectorOpNotIn, Values: []string{node}}
}

// require adds the expressions and fields to every term, because terms are alternatives. An empty term
// matches no node. It stays empty: with an expression it would match nearly all.
func require(affinity *corev1.NodeAffinity, expressions, fields []corev1.NodeSelectorRequirement) {
	if len(expressions)+len(fields) == 0 {
		return
	}
	if affinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		affinity.RequiredDuringSchedulingIgnoredDuringExecution = &corev1.NodeSelector{}
	}
	required := affinity.RequiredDuringSchedulingIgnoredDuringExecution
	if len(required.NodeSelectorTerms) == 0 {
		required.NodeSelectorTerms = []corev1.NodeSelectorTerm{{MatchExpressions: expressions, MatchFields: fields}}
		return
	}
	for i := range required.NodeSelectorTerms {
		if term := &required.NodeSelectorTerms[i]; len(term.MatchExpressions)+len(term.MatchFields) > 0 {
			term.MatchExpressions = append(term.MatchExpressions, unsaid(term.MatchExpressions, expressions)...)
			term.MatchFields = append(term.MatchFields, unsaid(term.MatchFields, fields)...)
		}
	}
}

// Readmit takes away from a template that Apply should avoid these nodes. It leaves alone what the author wrote: work
// whose author keeps it from a node never failed there.
func Readmit(template map[string]any, nodes []string) error {
	if len(nodes) == 0 {
		return nil
	}
	holder, err := child(template, "spec")
	if err != nil {
		return err
	}
	spec := &corev1.PodSpec{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(holder, spec); err != nil {
		return fmt.Errorf("cannot decode the pod spec: %w", err)
	}
	if spec.Affinity == nil || spec.Affinity.NodeAffinity == nil || spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return nil
	}
	readmit(spec.Affinity.NodeAffinity, nodes)
	encoded, err := runtime.DefaultUnstructuredConverter.ToUnstructured(spec.Affinity)
	if err != nil {
		return fmt.Errorf("cannot encode the affinity: %w", err)
	}
	holder["affinity"] = encoded
	return nil
}

// readmit removes a single term of which nothing is left: require made it. Empty, it would match no node.
func readmit(affinity *corev1.NodeAffinity, nodes []string) {
	named := func(f corev1.NodeSelectorRequirement) bool {
		return slices.ContainsFunc(nodes, func(name string) bool { return equality.Semantic.DeepEqual(f, notOn(name)) })
	}
	terms := affinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
	for i := range terms {
		had := len(terms[i].MatchFields)
		terms[i].MatchFields = slices.DeleteFunc(terms[i].MatchFields, named)
		if len(terms) == 1 && had > 0 && len(terms[i].MatchExpressions)+len(terms[i].MatchFields) == 0 {
			affinity.RequiredDuringSchedulingIgnoredDuringExecution = nil
		}
	}
}

func prefer(affinity *corev1.NodeAffinity, expressions []corev1.NodeSelectorRequirement, weight int32) {
	for _, preferred := range affinity.PreferredDuringSchedulingIgnoredDuringExecution {
		expressions = unsaid(preferred.Preference.MatchExpressions, expressions)
	}
	if len(expressions) > 0 {
		affinity.PreferredDuringSchedulingIgnoredDuringExecution = append(affinity.PreferredDuringSchedulingIgnoredDuringExecution,
			corev1.PreferredSchedulingTerm{Weight: weight, Preference: corev1.NodeSelectorTerm{MatchExpressions: expressions}})
	}
}

// dislike prefers all other nodes, as strongly as there is.
func dislike(affinity *corev1.NodeAffinity, fields []corev1.NodeSelectorRequirement) {
	const weight = 100
	if len(fields) > 0 {
		affinity.PreferredDuringSchedulingIgnoredDuringExecution = append(affinity.PreferredDuringSchedulingIgnoredDuringExecution,
			corev1.PreferredSchedulingTerm{Weight: weight, Preference: corev1.NodeSelectorTerm{MatchFields: fields}})
	}
}

// unsaid are the expressions that the existing ones do not include.
func unsaid(there, expressions []corev1.NodeSelectorRequirement) []corev1.NodeSelectorRequirement {
	return slices.DeleteFunc(slices.Clone(expressions), func(e corev1.NodeSelectorRequirement) bool {
		return slices.ContainsFunc(there, func(t corev1.NodeSelectorRequirement) bool {
			return t.Key == e.Key && t.Operator == e.Operator && !slices.ContainsFunc(e.Values, func(v string) bool { return !slices.Contains(t.Values, v) })
		})
	})
}
