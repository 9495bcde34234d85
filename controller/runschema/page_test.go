// SPDX-License-Identifier: Apache-2.0

package runschema_test

import (
	"os"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// A field that the page does not name is unknown to users.
func TestThePageNamesEveryField(t *testing.T) {
	page, err := os.ReadFile("../../docs/api/codeflare.md")
	if err != nil {
		t.Fatal(err)
	}
	for kind, crd := range crds(t) {
		_, rest, found := strings.Cut(string(page), "\n## "+kind+"\n")
		section, _, _ := strings.Cut(rest, "\n## ")
		if !found {
			t.Errorf("the page has no section %s", kind)
		}
		schema := crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties
		for _, field := range append(fields(schema["spec"], ""), fields(schema["status"], "")...) {
			// The fields of securityContext share a row.
			named := strings.TrimPrefix(field, "securityContext.")
			if named != "" && !strings.Contains(section, "`"+named+"`") {
				t.Errorf("the section %s does not name %s", kind, field)
			}
		}
	}
}

// fields are the paths of the fields that users see. Those of envFrom and of conditions are
// Kubernetes' own.
func fields(schema apiextensionsv1.JSONSchemaProps, path string) []string {
	switch {
	case path == "envFrom", path == "conditions":
		return []string{path}
	case schema.Items != nil:
		return fields(*schema.Items.Schema, path+"[]")
	case schema.AdditionalProperties != nil && schema.AdditionalProperties.Schema.Type == "object":
		return fields(*schema.AdditionalProperties.Schema, path+".NAME")
	case len(schema.Properties) == 0:
		return []string{path}
	}
	var all []string
	for name, property := range schema.Properties {
		all = append(all, fields(property, strings.TrimPrefix(path+"."+name, "."))...)
	}
	return all
}
