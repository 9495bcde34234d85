// SPDX-License-Identifier: Apache-2.0

package packaging

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"sigs.k8s.io/yaml"
)

const schemaFile = "values.schema.json"

// reference matches a value that a template reads.
var reference = regexp.MustCompile(`\.Values((?:\.\w+)+)`)

// kubernetes matches sections that have the fields of a Kubernetes object: more keys are valid
// than the chart sets by default.
var kubernetes = regexp.MustCompile(`^(resources|affinity|strategy|issuerRef|tlsConfig|\w*[sS]ecurityContext|\w*[lL]abels|\w*[aA]nnotations|nodeSelector)$`)

// addSchema adds a schema to a chart without one. It allows the values of values.yaml and those
// that templates read. It does not check types.
func addSchema(files map[string][]byte) error {
	if files[schemaFile] != nil {
		return nil
	}
	values := map[string]any{}
	if err := yaml.Unmarshal(files["values.yaml"], &values); err != nil {
		return fmt.Errorf("cannot parse values.yaml: %w", err)
	}
	for _, name := range sortedKeys(files) {
		if !strings.HasPrefix(name, "templates/") {
			continue
		}
		for _, found := range reference.FindAllSubmatch(files[name], -1) {
			mention(values, strings.Split(string(found[1]), ".")[1:])
		}
	}
	// Keys of Helm and of the umbrella chart.
	mention(values, []string{"global"})
	mention(values, []string{"enabled"})
	text, err := json.Marshal(knownKeys(values))
	files[schemaFile] = text
	return err
}

// knowKeysOf adds the keys of a part's values to the schema of the umbrella chart: Helm applies
// the part's own schema only if the part is enabled.
func (c *Chart) knowKeysOf(part Chart) error {
	var theirs, ours struct {
		Properties map[string]map[string]any `json:"properties"`
	}
	all := map[string]any{}
	err := errors.Join(json.Unmarshal(part.Files[schemaFile], &theirs), json.Unmarshal(c.Files[schemaFile], &ours), json.Unmarshal(c.Files[schemaFile], &all))
	if err != nil {
		return fmt.Errorf("cannot parse the schemas of %s and its part %s: %w", c.Name, part.Name, err)
	}
	section := ours.Properties[part.Name]
	known, is := section["properties"].(map[string]any)
	if !is {
		return fmt.Errorf("the schema of chart %s lists no properties of its part %s", c.Name, part.Name)
	}
	for key := range theirs.Properties {
		if known[key] == nil {
			known[key] = map[string]any{}
		}
	}
	section["additionalProperties"] = false
	all["properties"] = ours.Properties
	if c.Files[schemaFile], err = json.Marshal(all); err != nil {
		return fmt.Errorf("cannot encode the schema of chart %s: %w", c.Name, err)
	}
	return nil
}

// mention adds a value that a template reads and values.yaml does not have. It does not add keys
// to a section that is empty in values.yaml: users may set any key there.
func mention(values map[string]any, path []string) {
	value, has := values[path[0]]
	if len(path) == 1 {
		if !has {
			values[path[0]] = nil
		}
		return
	}
	section, is := value.(map[string]any)
	switch {
	case is && len(section) > 0:
		mention(section, path[1:])
	case value == nil:
		section = map[string]any{}
		values[path[0]] = section
		mention(section, path[1:])
	}
}

// knownKeys returns the schema of a section. An empty section may have any keys.
func knownKeys(section map[string]any) map[string]any {
	properties := map[string]any{}
	for key, value := range section {
		properties[key] = map[string]any{}
		if nested, is := value.(map[string]any); is && len(nested) > 0 && !kubernetes.MatchString(key) {
			properties[key] = knownKeys(nested)
		}
	}
	return map[string]any{"type": []string{"object", "null"}, "additionalProperties": false, "properties": properties}
}
