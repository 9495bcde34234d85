// SPDX-License-Identifier: Apache-2.0

package nodehealth

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Unusable are the signs that say that new pods get nothing of a resource on this node, or nothing
// at all (AllPods). There are more of them than Findings: pods may run on where no new pod starts.
// Missing devices are none of them, because the others can be used.
func (r Rules) Unusable(node *corev1.Node) []Finding {
	return slices.Concat(r.inCondition(node), r.tainted(node), r.repelling(node), closed(node))
}

// repelling are labels that keep new pods away, whether or not others have to leave.
func (r Rules) repelling(node *corev1.Node) []Finding {
	var findings []Finding
	for resource, labels := range r.Labels {
		for _, l := range labels {
			if value, ok := node.Labels[l.Key]; ok && value == l.Value && repels(l) {
				cause := Cause{NodeLabel, l.Key + "=" + l.Value}
				findings = append(findings, Finding{Cause: cause, Resource: corev1.ResourceName(resource)})
			}
		}
	}
	return findings
}

// NodeCordoned is the source of a sign for which no pod leaves, so Sources does not have it.
const NodeCordoned Source = "NodeCordoned"

// closed is why the node takes no new pods at all, whatever the rules.
func closed(node *corev1.Node) []Finding {
	var findings []Finding
	if node.Spec.Unschedulable {
		findings = append(findings, Finding{Cause: Cause{NodeCordoned, corev1.TaintNodeUnschedulable}, Resource: AllPods})
	}
	for _, t := range node.Spec.Taints {
		if ofKubernetes(t) && repels(t) && t.Key != corev1.TaintNodeMemoryPressure { // pods that request memory tolerate it
			findings = append(findings, Finding{Cause: Cause{sourceOf(t), t.Key}, Resource: AllPods})
		}
	}
	return findings
}

func sourceOf(t corev1.Taint) Source {
	switch t.Key {
	case corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable:
		return NodeNotReady
	case corev1.TaintNodeUnschedulable:
		return NodeCordoned
	}
	return NodeTaint
}

// IsSign tells whether a taint is about the health of a node, and not about what the node is for.
func (r Rules) IsSign(t corev1.Taint) bool {
	return ofKubernetes(t) || slices.ContainsFunc(r.Taints, func(rule TaintRule) bool { return rule.matches(t) })
}

// repels: new pods get no place on the node.
func repels(t corev1.Taint) bool {
	return t.Effect == corev1.TaintEffectNoSchedule || t.Effect == corev1.TaintEffectNoExecute
}

// ofKubernetes are the taints of the node controllers.
func ofKubernetes(t corev1.Taint) bool {
	return strings.HasPrefix(t.Key, "node.kubernetes.io/") || strings.HasPrefix(t.Key, "node.cloudprovider.kubernetes.io/")
}
