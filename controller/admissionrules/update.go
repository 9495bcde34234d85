// SPDX-License-Identifier: Apache-2.0

package admissionrules

import (
	"bytes"
	"encoding/json"
	"reflect"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/internal/kinds"
)

const immutable = "is immutable"

// ValidateUpdate lists the forbidden changes. What was stored is never judged
// again: a finalizer must be removable from an object that today's rules for
// creation would refuse. A name is judged when Kueue begins to use it.
func ValidateUpdate(before, after *v1beta2.AppWrapper) field.ErrorList {
	spec := field.NewPath("spec")
	var problems field.ErrorList
	if !ptr.Equal(before.Spec.ManagedBy, after.Spec.ManagedBy) {
		problems = append(problems, field.Forbidden(spec.Child("managedBy"), immutable))
	}
	for _, label := range []string{v1beta2.UserLabel, v1beta2.UserIDLabel} {
		if before.Labels[label] != after.Labels[label] {
			problems = append(problems, field.Forbidden(field.NewPath("metadata", "labels").Key(label), immutable))
		}
	}
	if !queued(before) && queued(after) {
		problems = append(problems, validateName(after, countPodSets(after))...)
	}
	if len(before.Spec.Components) != len(after.Spec.Components) {
		return append(problems, field.Forbidden(spec.Child("components"), "the number of components "+immutable))
	}
	for i := range before.Spec.Components {
		path := spec.Child("components").Index(i)
		problems = append(problems, validateComponentUpdate(&before.Spec.Components[i], &after.Spec.Components[i], path)...)
	}
	return problems
}

func queued(aw *v1beta2.AppWrapper) bool {
	_, named := aw.Labels[v1beta2.QueueNameLabel]
	return named
}

// countPodSets counts those that Kueue would name after the AppWrapper.
func countPodSets(aw *v1beta2.AppWrapper) int {
	count := 0
	for i, template := range Decode(aw).Templates {
		if template == nil {
			continue
		}
		if podSets, err := kinds.PodSets(aw.Spec.Components[i].DeclaredPodSets, template); err == nil {
			count += len(podSets)
		}
	}
	return count
}

func validateComponentUpdate(before, after *v1beta2.AppWrapperComponent, path *field.Path) field.ErrorList {
	var problems field.ErrorList
	if !sameJSON(before.Template.Raw, after.Template.Raw) {
		problems = append(problems, field.Forbidden(path.Child("template"), immutable))
	}
	path = path.Child("podSets")
	if len(before.DeclaredPodSets) != len(after.DeclaredPodSets) {
		return append(problems, field.Forbidden(path, "the number of pod sets "+immutable))
	}
	for i, podSet := range before.DeclaredPodSets {
		if podSet.Count() != after.DeclaredPodSets[i].Count() {
			problems = append(problems, field.Forbidden(path.Index(i).Child("replicas"), immutable))
		}
		if podSet.Path != after.DeclaredPodSets[i].Path {
			problems = append(problems, field.Forbidden(path.Index(i).Child("path"), immutable))
		}
	}
	return problems
}

// sameJSON sees through another order of keys, and through fields that are null: a JSON merge patch, as Kueue sends it
// to start work, leaves these out of the lists that it replaces. To Kubernetes such a field is one that is not there.
func sameJSON(a, b []byte) bool {
	if bytes.Equal(a, b) {
		return true
	}
	decodedA, errA := decode(a)
	decodedB, errB := decode(b)
	return errA == nil && errB == nil && equal(decodedA, decodedB)
}

func equal(a, b any) bool {
	return reflect.DeepEqual(withoutNulls(a), withoutNulls(b))
}

func withoutNulls(value any) any {
	switch v := value.(type) {
	case map[string]any:
		for key, inner := range v {
			if inner == nil {
				delete(v, key)
			} else {
				withoutNulls(inner)
			}
		}
	case []any:
		for _, inner := range v {
			withoutNulls(inner)
		}
	}
	return value
}

// decode keeps numbers as they are written: two large ones may be the same float.
func decode(text []byte) (any, error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var decoded any
	err := decoder.Decode(&decoded)
	return decoded, err
}
