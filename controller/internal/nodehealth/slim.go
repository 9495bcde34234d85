// SPDX-License-Identifier: Apache-2.0

package nodehealth

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
)

// Slim is a node reduced to its identity, what the rules read, and who cordoned it.
func (r Rules) Slim(node *corev1.Node) *corev1.Node {
	slim := &corev1.Node{}
	slim.Name, slim.UID, slim.ResourceVersion = node.Name, node.UID, node.ResourceVersion
	slim.CreationTimestamp, slim.DeletionTimestamp, slim.Spec.Unschedulable = node.CreationTimestamp, node.DeletionTimestamp, node.Spec.Unschedulable
	slim.Annotations = chosen(node.Annotations, v1beta2.CordonedAnnotation, v1beta2.UncordonedAnnotation)
	slim.Labels, slim.Spec.Taints = r.slimLabels(node.Labels), r.slimTaints(node.Spec.Taints)
	for _, c := range node.Status.Conditions {
		notReady := c.Type == corev1.NodeReady && c.Status != corev1.ConditionTrue && r.NotReady.Leave
		if notReady || slices.ContainsFunc(r.Conditions, func(rule ConditionRule) bool { return rule.Type == c.Type }) {
			kept := corev1.NodeCondition{Type: c.Type, Status: c.Status, LastTransitionTime: c.LastTransitionTime}
			slim.Status.Conditions = append(slim.Status.Conditions, kept)
		}
	}
	for _, rule := range r.DevicesMissing {
		keep(&slim.Status.Capacity, node.Status.Capacity, rule)
		keep(&slim.Status.Allocatable, node.Status.Allocatable, rule)
	}
	return slim
}

// chosen are the entries with these keys; nil if there are none.
func chosen(whole map[string]string, keys ...string) map[string]string {
	var slim map[string]string
	for _, key := range keys {
		if value, ok := whole[key]; ok {
			if slim == nil {
				slim = map[string]string{}
			}
			slim[key] = value
		}
	}
	return slim
}

func (r Rules) slimLabels(whole map[string]string) map[string]string {
	var keys []string
	for _, rules := range r.Labels {
		for _, rule := range rules {
			keys = append(keys, rule.Key)
		}
	}
	return chosen(whole, keys...)
}

func (r Rules) slimTaints(whole []corev1.Taint) []corev1.Taint {
	var slim []corev1.Taint
	for _, t := range whole {
		if r.readsTaint(t.Key) || r.NotReady.reads(t) {
			slim = append(slim, t)
		}
	}
	return slim
}

func keep(slim *corev1.ResourceList, whole corev1.ResourceList, rule Reaction) {
	for name, quantity := range whole {
		if rule.isAbout(name) {
			if *slim == nil {
				*slim = corev1.ResourceList{}
			}
			(*slim)[name] = quantity
		}
	}
}

func (r Rules) readsTaint(key string) bool {
	return slices.ContainsFunc(r.Taints, func(rule TaintRule) bool { return rule.Key == key })
}

// mayTolerate tells whether a toleration may be of a taint with a rule.
func (r Rules) mayTolerate(t corev1.Toleration) bool {
	if t.Key == "" {
		return r.NotReady.Leave || len(r.Taints) > 0
	}
	return r.readsTaint(t.Key) || r.NotReady.reads(corev1.Taint{Key: t.Key, Effect: corev1.TaintEffectNoExecute})
}

// SlimTolerations leaves the tolerations that the rules read, which few pods have.
func (r Rules) SlimTolerations(whole []corev1.Toleration) []corev1.Toleration {
	var slim []corev1.Toleration
	for _, t := range whole {
		if !isDefault(t) && r.mayTolerate(t) {
			slim = append(slim, t)
		}
	}
	return slim
}
