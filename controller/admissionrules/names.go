// SPDX-License-Identifier: Apache-2.0

package admissionrules

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	names "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/mlbatch/mlbatch/controller/internal/kinds"
)

// wrongName refuses a name that no object of a known kind can have, and one of which the names of its
// pods, their labels and Services cannot be made.
func wrongName(template *unstructured.Unstructured, path *field.Path) field.ErrorList {
	name, at, written := kinds.LikelyName(template), path.Child("metadata", "name"), template.GetName()
	if written == "" {
		at, written = path.Child("metadata", "generateName"), template.GetGenerateName()
	}
	kind := kinds.For(template.GroupVersionKind())
	if name == "" || !kind.Known() {
		return nil
	}
	if wrong := names.IsDNS1123Subdomain(name); len(wrong) > 0 {
		return field.ErrorList{field.Invalid(at, written, strings.Join(wrong, "; "))}
	}
	if why := wrongDerived(name, kind.Derived(template)); why != "" {
		return field.ErrorList{field.Invalid(at, written, why)}
	}
	return nil
}

// wrongDerived is about the longest of the names that would be too long, or else about the first with
// a wrong character.
func wrongDerived(name string, derived []kinds.Derived) string {
	longest, why := longestLabel, ""
	for _, d := range derived {
		if n := len(name + d.Suffix); n > longest {
			longest = n
			why = fmt.Sprintf("is too long by %d: %s would be %q, which has %d characters of at most %d", n-longestLabel, d.Of, name+d.Suffix, n, longestLabel)
		}
	}
	for _, d := range derived {
		if wrong := breaks(d.Rule, name+d.Suffix); why == "" && len(wrong) > 0 {
			return fmt.Sprintf("%s would be %q: %s", d.Of, name+d.Suffix, strings.Join(wrong, "; "))
		}
	}
	return why
}

func breaks(rule kinds.NameRule, name string) []string {
	switch rule {
	case kinds.ServiceName:
		return names.IsDNS1035Label(name)
	case kinds.HostName:
		return names.IsDNS1123Label(name)
	case kinds.LabelKey:
		return names.IsQualifiedName(name)
	}
	return names.IsValidLabelValue(name)
}

func wrongLabels(template *unstructured.Unstructured, path *field.Path) field.ErrorList {
	return labelsAndAnnotations(template.GetLabels(), template.GetAnnotations(), path.Child("metadata"))
}

// wrongPodLabels: most operators pass them on without a look.
func wrongPodLabels(_ kinds.Kind, in located) field.ErrorList {
	return labelsAndAnnotations(in.pod.Labels, in.pod.Annotations, in.path.Child("metadata"))
}

func labelsAndAnnotations(labels, annotations map[string]string, path *field.Path) field.ErrorList {
	return append(metav1validation.ValidateLabels(labels, path.Child("labels")), validation.ValidateAnnotations(annotations, path.Child("annotations"))...)
}
