// SPDX-License-Identifier: Apache-2.0

package admissionrules

import (
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/mlbatch/mlbatch/controller/internal/kinds"
)

// suspended refuses what nobody would start. Guides for Kueue without AppWrappers have it.
func suspended(template *unstructured.Unstructured, path *field.Path) field.ErrorList {
	var problems field.ErrorList
	for _, at := range kinds.For(template.GroupVersionKind()).Suspended(template) {
		problems = append(problems, field.Forbidden(path.Child(at), "leave it out: the AppWrapper is suspended until it has quota, and nobody would start what it wraps"))
	}
	return problems
}

// faulty refuses fields with which the controller of a kind makes no pods.
func faulty(template *unstructured.Unstructured, path *field.Path) field.ErrorList {
	var problems field.ErrorList
	for _, fault := range kinds.For(template.GroupVersionKind()).Faults(template) {
		why := fault.Why
		if why == "" {
			why = strings.Join(breaks(fault.Rule, fault.Value), "; ")
		}
		if why != "" {
			problems = append(problems, field.Invalid(path.Child(fault.Path), fault.Value, why))
		}
	}
	return problems
}
