// SPDX-License-Identifier: Apache-2.0

package charts_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"sigs.k8s.io/yaml"
)

// aQuantity is in the pattern of each quantity of a schema, and in no other.
const aQuantity = "[KMGTPE]i"

// quantities calls found with an object for each place where a schema has a quantity.
func quantities(path string, s *apiextensions.JSONSchemaProps, wrap func(any) any, found func(string, any)) {
	if s.XIntOrString && strings.Contains(s.Pattern, aQuantity) {
		found(path, wrap("1e-2000000000"))
	}
	for name, p := range s.Properties {
		quantities(path+"."+name, &p, func(v any) any { return wrap(map[string]any{name: v}) }, found)
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
		quantities(path+"{}", s.AdditionalProperties.Schema, func(v any) any { return wrap(map[string]any{"Worker": v}) }, found)
	}
	if s.Items != nil && s.Items.Schema != nil {
		quantities(path+"[]", s.Items.Schema, func(v any) any { return wrap([]any{v}) }, found)
	}
}

// Kueue, operators and the scheduler decode each quantity of a member's object.
func TestEveryQuantityOfAMemberIsBounded(t *testing.T) {
	growth := policies(t)["mlbatch-growth"]
	places, open := 0, map[string][]string{}
	judged := []string{"PyTorchJob", "RayCluster", "RayJob", "PodGroup"}
	for _, text := range everyPartOn(t, "v1.37.0")["CustomResourceDefinition"] {
		var crd apiextensions.CustomResourceDefinition
		if err := yaml.Unmarshal([]byte(text), &crd); err != nil {
			t.Fatal(err)
		}
		if !slices.Contains(judged, crd.Spec.Names.Kind) {
			continue
		}
		for _, v := range crd.Spec.Versions {
			spec := v.Schema.OpenAPIV3Schema.Properties["spec"]
			quantities("spec", &spec, func(a any) any { return a }, func(path string, spec any) {
				places++
				body, _ := json.Marshal(spec)
				object := fmt.Sprintf(`{"apiVersion":"%s/%s","kind":%q,"metadata":{"name":"x"},"spec":%s}`, crd.Spec.Group, v.Name, crd.Spec.Names.Kind, body)
				if !bounds(t, growth, object) {
					open[crd.Spec.Names.Kind+"/"+v.Name] = append(open[crd.Spec.Names.Kind+"/"+v.Name], path)
				}
			})
		}
	}
	for kind, paths := range open {
		slices.Sort(paths)
		t.Errorf("%s: nobody bounds\n  %s", kind, strings.Join(paths, "\n  "))
	}
	if places < 200 {
		t.Errorf("only %d places are known", places)
	}
}

// bounds reports whether the policy refuses an object because of its quantity. It fails the test if it refuses an
// honest quantity there, too.
func bounds(t *testing.T, growth validating.Validator, object string) (refused bool) {
	t.Helper()
	for _, d := range decide(t, growth, request{operation: admission.Create, object: object}, false) {
		refused = refused || strings.Contains(d.Message, "digits in its exponent") || strings.Contains(d.Message, "elasticPolicy.metrics")
	}
	for _, honest := range []string{`"1Mi"`, "1"} { // a CRD takes integers, too
		r := request{operation: admission.Create, object: strings.Replace(object, `"1e-2000000000"`, honest, 1)}
		for _, d := range decide(t, growth, r, false) {
			if strings.Contains(d.Message, "digits in its exponent") || strings.Contains(d.Message, "no such") {
				t.Errorf("%s: %s", r.object, d.Message)
			}
		}
	}
	return refused
}
