// SPDX-License-Identifier: Apache-2.0

package slackquota

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/mlbatch/mlbatch/controller/internal/nodehealth"
)

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
