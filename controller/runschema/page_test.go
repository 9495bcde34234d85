// SPDX-License-Identifier: Apache-2.0

package runschema_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/mlbatch/mlbatch/test/golden"
)

const page = "../../docs/api/codeflare.md"

// The tables of the page are what the types say of their fields.
func TestThePageHasEveryField(t *testing.T) {
	for kind, crd := range crds(t) {
		schema := crd.Spec.Versions[0].Schema.OpenAPIV3Schema
		for _, part := range []string{"spec", "status"} {
			object, has := schema.Properties[part]
			if !has {
				continue
			}
			table := fmt.Sprintf("| field of `%s` | meaning |\n|---|---|\n", part)
			for _, r := range rows(object, "", "") {
				table += "| " + r + " |\n"
			}
			golden.Between(t, page, "<!-- "+part+" of "+kind+": written by make generate -->\n", "<!-- end -->", table)
		}
	}
}

// rows has one for each field that users see. Those of envFrom and of conditions are Kubernetes' own.
func rows(schema apiextensionsv1.JSONSchemaProps, path, required string) []string {
	own := path == "envFrom" || path == "conditions"
	switch {
	case !own && schema.Items != nil && len(schema.Items.Schema.Properties) > 0:
		return rows(*schema.Items.Schema, path+"[]", required)
	case schema.AdditionalProperties != nil && schema.AdditionalProperties.Schema.Type == "object":
		return rows(*schema.AdditionalProperties.Schema, path+".NAME", required)
	case own || len(schema.Properties) == 0:
		return []string{fmt.Sprintf("`%s`%s | %s", path, required, meaning(schema))}
	}
	var all []string
	for _, name := range slices.Sorted(maps.Keys(schema.Properties)) {
		needs := ""
		if slices.Contains(schema.Required, name) {
			needs = `\*`
		}
		all = append(all, rows(schema.Properties[name], strings.TrimPrefix(path+"."+name, "."), needs)...)
	}
	return all
}

// meaning is the comment of the field, and its default.
func meaning(schema apiextensionsv1.JSONSchemaProps) string {
	text := strings.ReplaceAll(strings.Join(strings.Fields(schema.Description), " "), "|", `\|`)
	if schema.Default != nil {
		text += " Default: `" + strings.Trim(string(schema.Default.Raw), `"`) + "`."
	}
	return text
}
