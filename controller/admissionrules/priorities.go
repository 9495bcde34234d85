// SPDX-License-Identifier: Apache-2.0

package admissionrules

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// prioritiesAnnotation lists the PriorityClasses of a team. charts/teams writes it beside the
// ResourceQuota that refuses pods with others.
const prioritiesAnnotation = "mlbatch-priorities"

func priority(namespace Namespace, pod *corev1.PodTemplateSpec) string {
	class, allowed := pod.Spec.PriorityClassName, namespace.Annotations[prioritiesAnnotation]
	if class == "" || allowed == "" {
		return ""
	}
	classes := strings.Split(allowed, ",")
	if slices.Contains(classes, class) {
		return ""
	}
	return fmt.Sprintf("this team's pods may not have the priorityClassName %s: choose one of %s, or leave it out", class, strings.Join(classes, ", "))
}
