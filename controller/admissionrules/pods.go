// SPDX-License-Identifier: Apache-2.0

package admissionrules

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/mlbatch/mlbatch/controller/internal/kinds"
)

// Namespace is where pods would run. Labels and annotations say which of them the API server
// accepts there; charts/teams and charts/mlbatch write both.
type Namespace struct {
	Labels, Annotations map[string]string
	Policies            Policies
	// HealthTaints are those by which the health of nodes is judged: KEY, with any value, or KEY=VALUE.
	HealthTaints []string
}

// Policies are those of charts/mlbatch that the API server enforces for what is wrapped.
type Policies struct {
	PodSecurity bool
	Placement   bool
	Exposure    bool
}

// podRule returns why the API server would refuse the pods of a template, or "".
type podRule func(Namespace, *corev1.PodTemplateSpec) string

// podRules are in the order in which problems are listed.
var podRules = []podRule{
	podSecurity,
	exceptedBaseline,
	priority,
	placement,
	apart,
}

// ValidateIn lists the templates that the API server would refuse in the namespace, and those
// whose pods it would refuse. It does so when they are created, and then the AppWrapper has its
// quota.
func (d Decoded) ValidateIn(namespace Namespace) field.ErrorList {
	var problems field.ErrorList
	for i, template := range d.Templates {
		if template != nil {
			at := field.NewPath("spec", "components").Index(i).Child("template")
			problems = append(problems, exposed(namespace, template, at)...)
			problems = append(problems, exclusiveJobs(namespace, template, at)...)
		}
		templates := d.podTemplates(i)
		for _, rule := range podRules {
			if why, at := firstOf(templates, namespace, rule); why != "" {
				problems = append(problems, field.Forbidden(at, why))
			}
		}
	}
	return problems
}

// WarningsOnPods has at most one warning: about pods that do not meet the level of Pod
// Security of which the namespace warns.
func (d Decoded) WarningsOnPods(namespace Namespace) []string {
	var all []located
	for i := range d.Templates {
		all = append(all, d.podTemplates(i)...)
	}
	why, at := firstOf(all, namespace, podSecurityWarning)
	if why == "" {
		return nil
	}
	return []string{fmt.Sprintf("%s: %s", at, why)}
}

// firstOf applies a rule to templates, which often differ in nothing that matters to it. It
// returns what is wrong with the first, and how many others there are.
func firstOf(templates []located, namespace Namespace, rule podRule) (why string, at *field.Path) {
	others := 0
	for i := range templates {
		reason := rule(namespace, &templates[i].pod)
		switch {
		case reason == "":
		case why == "":
			why, at = reason, templates[i].path
		default:
			others++
		}
	}
	if others > 0 {
		why += fmt.Sprintf(" (and %d more like this)", others)
	}
	return why, at
}

// located is a pod template of a component, and where it is.
type located struct {
	path *field.Path
	// podSet is the path as the pod set has it.
	podSet string
	pod    corev1.PodTemplateSpec
	// addedVolumes are those that the controller of its kind adds.
	addedVolumes []string
}

// podTemplates are those of the pod sets of component i. It leaves out what other rules
// refuse.
func (d Decoded) podTemplates(i int) []located {
	template := d.Templates[i]
	if template == nil {
		return nil
	}
	podSets, err := kinds.PodSets(d.AppWrapper.Spec.Components[i].DeclaredPodSets, template)
	if err != nil {
		return nil
	}
	added := kinds.For(template.GroupVersionKind()).AddedVolumes(template)
	var found []located
	for _, podSet := range podSets {
		if pod, err := PodTemplate(template, podSet.Path); err == nil {
			found = append(found, located{field.NewPath("spec", "components").Index(i).Child(podSet.Path), podSet.Path, pod, added})
		}
	}
	return found
}
