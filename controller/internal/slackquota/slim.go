// SPDX-License-Identifier: Apache-2.0

package slackquota

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/mlbatch/mlbatch/controller/internal/nodehealth"
)

// Slim reduces nodes, queues and ConfigMaps to what is read, and drops of all else who wrote which field.
func Slim(rules nodehealth.Rules) func(object any) (any, error) {
	return func(object any) (any, error) {
		switch o := object.(type) {
		case *corev1.Node:
			return SlimNode(rules, o), nil
		case *kueue.ClusterQueue:
			return SlimQueue(o), nil
		case *corev1.ConfigMap:
			return slimConfigMap(o), nil
		case metav1.Object:
			o.SetManagedFields(nil)
		}
		return object, nil
	}
}

// SlimNode is a node reduced to what is read. A heartbeat changes nothing of it.
func SlimNode(rules nodehealth.Rules, node *corev1.Node) *corev1.Node {
	slim := &corev1.Node{}
	slim.Name, slim.UID, slim.ResourceVersion, slim.DeletionTimestamp = node.Name, node.UID, node.ResourceVersion, node.DeletionTimestamp
	slim.Labels, slim.Spec.Unschedulable = node.Labels, node.Spec.Unschedulable
	for _, t := range node.Spec.Taints {
		slim.Spec.Taints = append(slim.Spec.Taints, corev1.Taint{Key: t.Key, Value: t.Value, Effect: t.Effect})
	}
	slim.Status.Capacity, slim.Status.Allocatable = node.Status.Capacity, node.Status.Allocatable
	for _, c := range node.Status.Conditions {
		if slices.ContainsFunc(rules.Conditions, func(rule nodehealth.ConditionRule) bool { return rule.Type == c.Type }) {
			slim.Status.Conditions = append(slim.Status.Conditions, corev1.NodeCondition{Type: c.Type, Status: c.Status})
		}
	}
	return slim
}

// SlimQueue is a queue reduced to what is read. What Kueue reports about it changes nothing of it.
func SlimQueue(q *kueue.ClusterQueue) *kueue.ClusterQueue {
	slim := &kueue.ClusterQueue{}
	slim.Name, slim.UID, slim.ResourceVersion, slim.DeletionTimestamp = q.Name, q.UID, q.ResourceVersion, q.DeletionTimestamp
	slim.Annotations = q.Annotations
	slim.Spec.CohortName, slim.Spec.ResourceGroups = q.Spec.CohortName, q.Spec.ResourceGroups
	for _, f := range q.ManagedFields {
		if wroteQuotas(f) {
			slim.ManagedFields = []metav1.ManagedFieldsEntry{f}
		}
	}
	return slim
}

// slimConfigMap forgets what others store in the namespace.
func slimConfigMap(c *corev1.ConfigMap) *corev1.ConfigMap {
	slim := &corev1.ConfigMap{}
	slim.Namespace, slim.Name, slim.ResourceVersion = c.Namespace, c.Name, c.ResourceVersion
	if c.Name == DevicesName || c.Name == DeclaredName {
		slim.Data = c.Data
	}
	return slim
}
