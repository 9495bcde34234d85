// SPDX-License-Identifier: Apache-2.0

package admissionrules

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// teamLabel has the value true in the namespaces of teams.
const teamLabel = "mlbatch-team-namespace"

// placement judges pods as the policy mlbatch-placement does, and says the same.
func placement(namespace Namespace, pod *corev1.PodTemplateSpec) string {
	if !namespace.limitsPlaces() {
		return ""
	}
	if pod.Spec.NodeName != "" {
		return "pods in a team namespace may not name their node: leave out nodeName, and use nodeSelector or affinity to choose among the nodes of your quota"
	}
	if !few(pod.Spec.Tolerations) {
		return "pods of this team have at most 64 tolerations, with keys of 317 and values of 63 characters: remove the others"
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
	return namespace.strangeTaints(pod.Spec.Tolerations)
}

func (n Namespace) limitsPlaces() bool {
	return n.Policies.Placement && n.Labels[teamLabel] == "true"
}

const keptAway = "pods in a team namespace may keep away from pods of their own namespace only: leave out namespaces and namespaceSelector " +
	"in podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution, which has at most 64 terms, and the annotation " + exclusiveAnnotation + " of a JobSet"

// exclusiveAnnotation makes JobSet's webhook keep the pods of every other JobSet away, also of other namespaces.
const exclusiveAnnotation = "alpha.jobset.sigs.k8s.io/exclusive-topology"

// apart judges which pods these keep away, as the policy mlbatch-placement does.
func apart(namespace Namespace, pod *corev1.PodTemplateSpec) string {
	if _, exclusive := pod.Annotations[exclusiveAnnotation]; namespace.limitsPlaces() && (exclusive || KeepsOthersAway(&pod.Spec)) {
		return keptAway
	}
	return ""
}

// exclusiveJobs refuses that annotation where JobSet reads it: at the JobSet, and at the templates of its Jobs.
func exclusiveJobs(namespace Namespace, template *unstructured.Unstructured, path *field.Path) field.ErrorList {
	jobs, _, _ := unstructured.NestedSlice(template.Object, "spec", "replicatedJobs") // other rules judge its type
	all := []any{template.Object}
	for _, job := range jobs {
		if job, is := job.(map[string]any); is {
			all = append(all, job["template"])
		}
	}
	exclusive := slices.ContainsFunc(all, func(o any) bool {
		object, _ := o.(map[string]any)
		_, found, _ := unstructured.NestedFieldNoCopy(object, "metadata", "annotations", exclusiveAnnotation)
		return found
	})
	if !exclusive || !namespace.limitsPlaces() {
		return nil
	}
	return field.ErrorList{field.Forbidden(path.Child("metadata", "annotations"), keptAway)}
}

// KeepsOthersAway reports whether the scheduler keeps pods of other namespaces from the nodes of such a pod.
func KeepsOthersAway(pod *corev1.PodSpec) bool {
	if pod.Affinity == nil || pod.Affinity.PodAntiAffinity == nil {
		return false
	}
	terms := pod.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	return len(terms) > 64 || slices.ContainsFunc(terms, func(t corev1.PodAffinityTerm) bool {
		return t.NamespaceSelector != nil || len(t.Namespaces) > 0
	})
}

// TolerationsAnnotation of a namespace lists the taints that its pods may tolerate: those of Tolerable.
const TolerationsAnnotation = "mlbatch-tolerations"

// Tolerable is KEY=VALUE, or KEY if any value may be tolerated.
func Tolerable(key, value string) string {
	if value == "" {
		return key
	}
	return key + "=" + value
}

// MayTolerate tells whether pods with this list may stand on a node with this taint.
func MayTolerate(list []string, taint corev1.Taint) bool {
	known := slices.Concat(list, conditionTaints)
	return slices.Contains(known, taint.Key) || slices.Contains(known, taint.Key+"="+taint.Value)
}

// conditionTaints say what a node tells of itself. They keep it for nobody.
var conditionTaints = []string{
	corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable, corev1.TaintNodeMemoryPressure, corev1.TaintNodeDiskPressure,
	corev1.TaintNodePIDPressure, corev1.TaintNodeNetworkUnavailable,
}

// strangeTaints says which taints a team's pods may not tolerate. Namespaces that are made by hand have no list.
func (n Namespace) strangeTaints(tolerations []corev1.Toleration) string {
	list, is := n.Annotations[TolerationsAnnotation]
	if !is {
		return ""
	}
	ofTeam := slices.DeleteFunc(strings.Split(list, ","), func(entry string) bool { return entry == "" })
	known := slices.Concat(ofTeam, conditionTaints, n.HealthTaints)
	var strange []string
	for _, t := range tolerations {
		valued := t.Key + "=" + t.Value
		equal := t.Operator == "" || t.Operator == corev1.TolerationOpEqual
		switch {
		case slices.Contains(known, t.Key), equal && slices.Contains(known, valued):
		case t.Operator == corev1.TolerationOpExists:
			strange = append(strange, t.Key)
		default:
			strange = append(strange, valued)
		}
	}
	if len(strange) == 0 {
		return ""
	}
	return fmt.Sprintf("this team's pods may not tolerate %s: remove it from tolerations, or ask an administrator to list it in tolerations of the team, whose pods tolerate %s",
		cut(strings.Join(strange, ", ")), cut(strings.Join(append(ofTeam, "conditions of nodes"), ", ")))
}

// cut leaves what people read of a long list.
func cut(list string) string {
	if runes := []rune(list); len(runes) > 1000 {
		return string(runes[:1000]) + "…"
	}
	return list
}

// few bounds what has to be compared.
func few(tolerations []corev1.Toleration) bool {
	return len(tolerations) <= 64 && !slices.ContainsFunc(tolerations, func(t corev1.Toleration) bool {
		return len(t.Key) > 317 || len(t.Value) > 63
	})
}
