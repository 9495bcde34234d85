// SPDX-License-Identifier: Apache-2.0

package admissionrules

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/internal/lifecycle"
	"github.com/mlbatch/mlbatch/controller/internal/spelling"
)

var annotationsPath = field.NewPath("metadata", "annotations")

// validateAnnotations refuses values that the controller would have to replace by a default.
func validateAnnotations(annotations map[string]string) field.ErrorList {
	var problems field.ErrorList
	_, unclear := lifecycle.ParsePolicy(annotations, lifecycle.StandardDefaults())
	for _, p := range unclear {
		problems = append(problems, field.Invalid(annotationsPath.Key(p.Annotation), p.Value, p.Message))
	}
	return problems
}

// WarningsOnCreate are about annotations of ours that have no effect, most likely because they
// are misspelt, about claims that a retry deletes, about components that may remove themselves
// before the controller has seen their result, about those that never end beside others, and about
// fields that a kind does not have.
func WarningsOnCreate(aw *v1beta2.AppWrapper) []string {
	return Decode(aw).WarningsOnCreate()
}

// WarningsOnCreate are those of the function of that name.
func (d Decoded) WarningsOnCreate() []string {
	warnings := unknownAnnotations(d.AppWrapper.Annotations, annotationsPath, lifecycle.Annotations())
	for i, component := range d.AppWrapper.Spec.Components {
		path := field.NewPath("spec", "components").Index(i)
		warnings = append(warnings, misplaced(component.Annotations, path.Child("annotations"))...)
		if template := d.Templates[i]; template != nil {
			warnings = append(warnings, misplaced(template.GetAnnotations(), path.Child("template", "metadata", "annotations"))...)
		}
		for j, podSet := range component.DeclaredPodSets {
			at := path.Child("podSets").Index(j).Child("annotations")
			warnings = append(warnings, unknownAnnotations(podSet.Annotations, at, podSetAnnotations)...)
		}
	}
	return slices.Concat(warnings, d.wrappedClaims(), d.timesToLive(), d.endless(), d.unknownFields())
}

func misplaced(annotations map[string]string, path *field.Path) []string {
	var warnings []string
	for _, name := range ours(annotations) {
		warnings = append(warnings, fmt.Sprintf("%s has no effect here: annotations belong in metadata of the AppWrapper", path.Key(name)))
	}
	return warnings
}

// WarningsOnUpdate are about annotations that are new or changed, including those that creation
// would have refused.
func WarningsOnUpdate(before, after *v1beta2.AppWrapper) []string {
	changed := maps.Clone(after.Annotations)
	maps.DeleteFunc(changed, func(name, value string) bool {
		old, was := before.Annotations[name]
		return was && old == value
	})
	warnings := unknownAnnotations(changed, annotationsPath, lifecycle.Annotations())
	for _, problem := range validateAnnotations(changed) {
		warnings = append(warnings, problem.Error()+"; the default is used")
	}
	return warnings
}

var podSetAnnotations = []string{
	v1beta2.PodSetAnnotationTASPodIndexLabel,
	v1beta2.PodSetAnnotationTASSubGroupIndexLabel,
	v1beta2.PodSetAnnotationTASSubGroupCount,
}

func unknownAnnotations(annotations map[string]string, path *field.Path, known []string) []string {
	var warnings []string
	for _, name := range ours(annotations) {
		if slices.Contains(known, name) {
			continue
		}
		nearest := slices.MinFunc(known, func(a, b string) int {
			return cmp.Compare(spelling.Distance(a, name), spelling.Distance(b, name))
		})
		warnings = append(warnings, fmt.Sprintf("%s is unknown and has no effect: did you mean %s?",
			path.Key(name), strings.TrimPrefix(nearest, v1beta2.AnnotationPrefix)))
	}
	return warnings
}

// ours are the names under our prefix, in order.
func ours(annotations map[string]string) []string {
	names := slices.Sorted(maps.Keys(annotations))
	return slices.DeleteFunc(names, func(name string) bool { return !strings.HasPrefix(name, v1beta2.AnnotationPrefix) })
}
