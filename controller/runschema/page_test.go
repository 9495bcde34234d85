// SPDX-License-Identifier: Apache-2.0

package runschema_test

import (
	"cmp"
	"fmt"
	"maps"
	"os"
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

// The sentences that the page quotes are those of the rules. Those that begin with "the annotation"
// are of a webhook.
func TestThePageQuotesTheRules(t *testing.T) {
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(text), "When a manifest is read:\n\n| sentence | what to do |\n|---|---|\n")
	table, _, _ = strings.Cut(table, "\n\n")
	lines := strings.Split(table, "\n")
	var rules strings.Builder
	for _, crd := range crds(t) {
		rulesOf(*crd.Spec.Versions[0].Schema.OpenAPIV3Schema, &rules)
	}
	for _, line := range lines {
		quoted, _, _ := strings.Cut(strings.TrimPrefix(line, "| "), " |")
		quoted, _, _ = strings.Cut(quoted, " …")
		if !strings.HasPrefix(quoted, "the annotation") && !strings.Contains(rules.String(), quoted) {
			t.Errorf("no rule says %q", quoted)
		}
	}
	if len(lines) < 20 {
		t.Errorf("the page quotes %d rules", len(lines))
	}
}

// rulesOf collects the sentences of a schema. A few are made of parts: their api stands for any.
func rulesOf(schema apiextensionsv1.JSONSchemaProps, all *strings.Builder) {
	for _, rule := range schema.XValidations {
		fmt.Fprintln(all, cmp.Or(rule.Message, strings.NewReplacer("' + self.api + '", "torch", "'", "").Replace(rule.MessageExpression)))
	}
	for name := range schema.Properties {
		rulesOf(schema.Properties[name], all)
	}
	if schema.Items != nil {
		rulesOf(*schema.Items.Schema, all)
	}
	if schema.AdditionalProperties != nil {
		rulesOf(*schema.AdditionalProperties.Schema, all)
	}
}
