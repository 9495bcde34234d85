// SPDX-License-Identifier: Apache-2.0

package packaging

import (
	"encoding/json"
	"fmt"
	"os"

	"sigs.k8s.io/yaml"
)

// keepAnnotations retain a CRD when Helm or Argo CD removes its release or its part: deleting a
// CRD deletes all its objects, including running jobs. Argo CD must use server-side apply,
// because Ray's CRDs are too large for the last-applied annotation.
var keepAnnotations = map[string]string{
	"helm.sh/resource-policy":         "keep",
	"argocd.argoproj.io/sync-options": "Prune=false,ServerSideApply=true",
}

// slimCRD reads a CRD, and returns it as one line of JSON, without descriptions and with
// keepAnnotations. Helm stores a release in one Secret of at most 1 MiB, which the unmodified
// CRDs of the platform would fill; indentation takes more space than all descriptions.
func slimCRD(file string) ([]byte, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("cannot read CRD: %w", err)
	}
	var crd map[string]any
	if err := yaml.Unmarshal(text, &crd); err != nil {
		return nil, fmt.Errorf("cannot parse %s: %w", file, err)
	}
	meta, ok := crd["metadata"].(map[string]any)
	if !ok {
		return nil, fmt.Errorf("%s has no metadata", file)
	}
	keep(meta)
	delete(crd, "status")
	return json.Marshal(withoutDescriptions(crd))
}

// keep adds those keepAnnotations that the metadata lacks.
func keep(meta map[string]any) {
	annotations, ok := meta["annotations"].(map[string]any)
	if !ok {
		annotations = map[string]any{}
		meta["annotations"] = annotations
	}
	for name, value := range keepAnnotations {
		if _, has := annotations[name]; !has {
			annotations[name] = value
		}
	}
}

// slimFields parses a YAML mapping and returns each of its fields as JSON
// without descriptions.
func slimFields(text []byte) (map[string]json.RawMessage, error) {
	var fields map[string]any
	if err := yaml.Unmarshal(text, &fields); err != nil {
		return nil, fmt.Errorf("cannot parse: %w", err)
	}
	slim := make(map[string]json.RawMessage, len(fields))
	for name, value := range fields {
		line, err := json.Marshal(withoutDescriptions(value))
		if err != nil {
			return nil, fmt.Errorf("cannot encode %s: %w", name, err)
		}
		slim[name] = line
	}
	return slim, nil
}

// withoutDescriptions drops every description that is a string. It keeps a property that is
// named description, because that is a mapping.
func withoutDescriptions(value any) any {
	switch v := value.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, child := range v {
			if _, text := child.(string); text && key == "description" {
				continue
			}
			out[key] = withoutDescriptions(child)
		}
		return out
	case []any:
		out := make([]any, 0, len(v))
		for _, child := range v {
			out = append(out, withoutDescriptions(child))
		}
		return out
	}
	return value
}
