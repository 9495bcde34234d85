// SPDX-License-Identifier: Apache-2.0

package admissionrules

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// teamLabel has the value true in the namespaces of teams.
const teamLabel = "mlbatch-team-namespace"

// placement judges pods as the policy mlbatch-placement does, and says the same.
func placement(namespace Namespace, pod *corev1.PodTemplateSpec) string {
	if !namespace.Policies.Placement || namespace.Labels[teamLabel] != "true" {
		return ""
	}
	if pod.Spec.NodeName != "" {
		return "pods in a team namespace may not name their node: leave out nodeName, and use nodeSelector or affinity to choose among the nodes of your quota"
	}
	for _, toleration := range pod.Spec.Tolerations {
		switch {
		case toleration.Key == "":
			return "pods in a team namespace may not tolerate every taint: name the key of each taint in tolerations"
		case strings.HasPrefix(toleration.Key, "node-role.kubernetes.io/"):
			return "pods in a team namespace may not run on control planes: remove the toleration of node-role.kubernetes.io/…"
		case toleration.Key == corev1.TaintNodeUnschedulable:
			return "pods in a team namespace may not run on cordoned nodes: remove the toleration of node.kubernetes.io/unschedulable"
		}
	}
	return ""
}
