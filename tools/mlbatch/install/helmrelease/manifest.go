// SPDX-License-Identifier: Apache-2.0

package helmrelease

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"
)

// Object is an object of a release, with the name of its part of the platform, or "".
type Object struct {
	*unstructured.Unstructured
	Part string
}

// CustomResourceDefinition is the kind of CRDs.
const CustomResourceDefinition = "CustomResourceDefinition"

// Decode parses a manifest as Helm writes it: a comment before each object names its template.
func Decode(manifest string) ([]Object, error) {
	var objects []Object
	for document := range strings.SplitSeq("\n"+manifest, "\n---\n") {
		decoded := map[string]any{}
		if err := yaml.Unmarshal([]byte(document), &decoded); err != nil {
			return nil, fmt.Errorf("cannot read a manifest: %w", err)
		}
		if len(decoded) > 0 {
			objects = append(objects, Object{&unstructured.Unstructured{Object: decoded}, partOf(document)})
		}
	}
	return objects, nil
}

// partOf returns kueue for "# Source: mlbatch/charts/kueue/templates/…".
func partOf(document string) string {
	_, source, _ := strings.Cut(document, "# Source: ")
	source, _, _ = strings.Cut(source, "\n")
	_, below, found := strings.Cut(source, "/charts/")
	if !found {
		return ""
	}
	part, _, _ := strings.Cut(below, "/")
	return part
}

// DefinedKinds returns the kinds whose CustomResourceDefinitions are among the objects.
func DefinedKinds(objects []Object) map[schema.GroupKind]bool {
	kinds := map[schema.GroupKind]bool{}
	for _, o := range objects {
		if o.GetKind() != CustomResourceDefinition {
			continue
		}
		group, _, _ := unstructured.NestedString(o.Object, "spec", "group")
		kind, _, _ := unstructured.NestedString(o.Object, "spec", "names", "kind")
		kinds[schema.GroupKind{Group: group, Kind: kind}] = true
	}
	return kinds
}
