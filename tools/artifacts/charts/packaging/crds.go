// SPDX-License-Identifier: Apache-2.0

package packaging

import (
	"encoding/json"
	"fmt"
	"os"

	"sigs.k8s.io/yaml"
)

// keepAnnotations make Helm and Argo CD leave a CRD alone when its release, or
// its part of the release, goes: with a CRD would go every object of its kind,
// running work included. Argo CD has also to apply it on the server's side,
// since Ray's are too large for the annotation that it would keep otherwise.
var keepAnnotations = map[string]string{
	"helm.sh/resource-policy":         "keep",
	"argocd.argoproj.io/sync-options": "Prune=false,ServerSideApply=true",
}

// slimCRD reads a CRD and returns it without descriptions, with what keeps it,
// as one line of JSON. Helm stores a release in one Secret of at most
// 1 MiB, which the CRDs of the platform would fill as they come; indentation
// costs more than all the words together.
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

// keep adds the annotations to the metadata of an object that lacks them.
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

// withoutDescriptions drops every description that is a text. A property that
// is called description is a mapping and stays.
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
