// SPDX-License-Identifier: Apache-2.0

// Package runschema answers what an API server says of a manifest of codeflare.dev, by the CRDs
// that are generated from the types. It makes no requests.
package runschema

import (
	"embed"
	"fmt"
	"io/fs"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"sigs.k8s.io/yaml"
)

// The folder crds is generated: see the Makefile.
//
//go:embed crds/*.yaml
var files embed.FS

// CRDs are the definitions of the four kinds, by kind.
func CRDs() (map[string]*apiextensionsv1.CustomResourceDefinition, error) {
	names, err := fs.Glob(files, "crds/*.yaml")
	if err != nil {
		return nil, fmt.Errorf("cannot find the CRDs: %w", err)
	}
	all := map[string]*apiextensionsv1.CustomResourceDefinition{}
	for _, name := range names {
		text, err := files.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("cannot read a CRD: %w", err)
		}
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.UnmarshalStrict(text, crd); err != nil {
			return nil, fmt.Errorf("cannot read %s: %w", name, err)
		}
		all[crd.Spec.Names.Kind] = crd
	}
	return all, nil
}

// definition is a CRD, ready to judge objects.
type definition struct {
	namespaced bool
	validator  validation.SchemaValidator
	structural *schema.Structural
	rules      *cel.Validator
}

// Schema has the definitions of the four kinds, by kind.
type Schema map[string]definition

// New compiles the definitions, which takes a moment.
func New() (Schema, error) {
	crds, err := CRDs()
	if err != nil {
		return nil, err
	}
	all := Schema{}
	for kind, crd := range crds {
		if all[kind], err = define(crd); err != nil {
			return nil, fmt.Errorf("cannot use the CRD of %s: %w", kind, err)
		}
	}
	return all, nil
}

func define(crd *apiextensionsv1.CustomResourceDefinition) (definition, error) {
	var internal apiextensions.JSONSchemaProps
	err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(crd.Spec.Versions[0].Schema.OpenAPIV3Schema, &internal, nil)
	if err != nil {
		return definition{}, err
	}
	validator, _, err := validation.NewSchemaValidator(&internal)
	if err != nil {
		return definition{}, err
	}
	structural, err := schema.NewStructural(&internal)
	if err != nil {
		return definition{}, err
	}
	return definition{
		namespaced: crd.Spec.Scope == apiextensionsv1.NamespaceScoped,
		validator:  validator,
		structural: structural,
		rules:      cel.NewValidator(structural, true, celconfig.PerCallLimit),
	}, nil
}
