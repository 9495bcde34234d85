// SPDX-License-Identifier: Apache-2.0

package charts_test

import (
	"bytes"
	"fmt"
	"os/exec"
	"sync"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"sigs.k8s.io/yaml"
)

// fluxDefinitions are the CRDs of Flux, by kind: the tool that generates ours generates them from Flux' types.
var fluxDefinitions = sync.OnceValues(func() (map[string]apiextensionsv1.CustomResourceDefinition, error) {
	cmd := exec.Command("go", "tool", "-modfile=tools/tools.mod", "controller-gen", "crd", "output:stdout",
		"paths=github.com/fluxcd/helm-controller/api/v2", "paths=github.com/fluxcd/source-controller/api/v1")
	cmd.Dir = ".."
	var problem bytes.Buffer
	cmd.Stderr = &problem
	text, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("cannot generate the CRDs of Flux: %w: %s", err, problem.Bytes())
	}
	all := map[string]apiextensionsv1.CustomResourceDefinition{}
	for _, document := range bytes.Split(text, []byte("\n---\n")) {
		var crd apiextensionsv1.CustomResourceDefinition
		if err := yaml.UnmarshalStrict(document, &crd); err != nil {
			return nil, fmt.Errorf("cannot read a CRD of Flux: %w", err)
		}
		all[crd.Spec.Names.Kind] = crd
	}
	return all, nil
})

// conformsToFlux checks an object against the schema and the rules of its CRD.
func conformsToFlux(t *testing.T, file, text string) {
	t.Helper()
	var object map[string]any
	if err := yaml.Unmarshal([]byte(text), &object); err != nil {
		t.Fatal(err)
	}
	crd, known := must(fluxDefinitions())(t)[fmt.Sprint(object["kind"])]
	if !known {
		t.Fatalf("%s: Flux has no kind %s", file, object["kind"])
	}
	for _, p := range problemsOf(t, crd.Spec.Versions[0].Schema.OpenAPIV3Schema, field.NewPath(file), object) {
		t.Error(p)
	}
}

// problemsOf is what a schema and its rules say of a value, which may be a part of an object.
func problemsOf(t *testing.T, props *apiextensionsv1.JSONSchemaProps, at *field.Path, value any) field.ErrorList {
	t.Helper()
	var internal apiextensions.JSONSchemaProps
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(props, &internal, nil); err != nil {
		t.Fatal(err)
	}
	validator, _, err := validation.NewSchemaValidator(&internal)
	if err != nil {
		t.Fatal(err)
	}
	structural := must(schema.NewStructural(&internal))(t)
	_, whole := props.Properties["apiVersion"]
	problems := validation.ValidateCustomResource(at, value, validator)
	broken, _ := cel.NewValidator(structural, whole, celconfig.PerCallLimit).Validate(t.Context(), at, structural, value, nil, celconfig.RuntimeCELCostBudget)
	return append(problems, broken...)
}
