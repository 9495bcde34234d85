// SPDX-License-Identifier: Apache-2.0

package config

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/mlbatch/mlbatch/controller/internal/kinds"
)

// ExtraKind is a kind of which the controller knows nothing but that it is to watch its
// objects. The chart gives it the rights to the resource.
type ExtraKind struct {
	// Group is empty for the core group, and nil where somebody forgot it.
	Group    *string `json:"group"`
	Version  string  `json:"version"`
	Kind     string  `json:"kind"`
	Resource string  `json:"resource"`
}

// GVK names the kind.
func (k ExtraKind) GVK() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: ptr.Deref(k.Group, ""), Version: k.Version, Kind: k.Kind}
}

func validateExtraKinds(extra []ExtraKind, path *field.Path) field.ErrorList {
	var problems field.ErrorList
	seen := map[schema.GroupVersionKind]bool{}
	for i, k := range extra {
		at, gvk := path.Index(i), k.GVK()
		problems = append(problems, k.validate(at)...)
		if kinds.Knows(gvk.GroupKind()) {
			problems = append(problems, field.Invalid(at, gvk.String(), "the controller knows this kind: leave it out"))
		}
		if seen[gvk] {
			problems = append(problems, field.Duplicate(at, gvk.String()))
		}
		seen[gvk] = true
	}
	return problems
}

func (k *ExtraKind) validate(path *field.Path) field.ErrorList {
	var problems field.ErrorList
	if k.Group == nil {
		problems = append(problems, field.Required(path.Child("group"), `for the core group write ""`))
	} else if *k.Group != "" {
		problems = append(problems, invalid(path.Child("group"), *k.Group, validation.IsDNS1123Subdomain(*k.Group))...)
	}
	required := []struct {
		key, value string
		check      func(string) []string
	}{
		{"version", k.Version, validation.IsDNS1035Label},
		{"kind", k.Kind, nil},
		{"resource", k.Resource, validation.IsDNS1035Label},
	}
	for _, r := range required {
		if r.value == "" {
			problems = append(problems, field.Required(path.Child(r.key), "a kind is listed with group, version, kind and resource"))
		} else if r.check != nil {
			problems = append(problems, invalid(path.Child(r.key), r.value, r.check(r.value))...)
		}
	}
	if k.Group != nil && *k.Group == "" && k.Resource == "secrets" {
		problems = append(problems, field.Forbidden(path.Child("resource"), "the controller gets no right to all Secrets: bind a Role in each namespace"))
	}
	return problems
}

func invalid(path *field.Path, value string, reasons []string) field.ErrorList {
	var problems field.ErrorList
	for _, why := range reasons {
		problems = append(problems, field.Invalid(path, value, why))
	}
	return problems
}
