// SPDX-License-Identifier: Apache-2.0

// Package variation sets random fields of an object, among those that its OpenAPI schema has.
package variation

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
)

// deepest is how many fields below an existing one a variation creates. What is further down
// belongs to pods and volumes.
const deepest = 3

// Schemas is the OpenAPI v3 document of a group and version.
type Schemas map[string]any

// place is a field that may be set.
type place struct {
	path   []string // a number is an index of a list
	schema map[string]any
}

func (p place) String() string { return strings.Join(p.path, ".") }

// Of returns the schema of a kind's spec.
func (s Schemas) Of(group, version, kind string) (map[string]any, error) {
	for _, schema := range Object(Object(s["components"])["schemas"]) {
		kinds, _ := Object(schema)["x-kubernetes-group-version-kind"].([]any)
		if slices.ContainsFunc(kinds, func(k any) bool {
			return Object(k)["group"] == group && Object(k)["version"] == version && Object(k)["kind"] == kind
		}) {
			return s.Resolve(Object(Object(schema)["properties"])["spec"]), nil
		}
	}
	return nil, fmt.Errorf("the API server publishes no schema of %s/%s %s", group, version, kind)
}

// Resolve follows references.
func (s Schemas) Resolve(schema any) map[string]any {
	resolved := Object(schema)
	if all, _ := resolved["allOf"].([]any); len(all) == 1 {
		resolved = Object(all[0])
	}
	if name, ok := resolved["$ref"].(string); ok {
		return Object(Object(Object(s["components"])["schemas"])[strings.TrimPrefix(name, "#/components/schemas/")])
	}
	return resolved
}

// places lists the fields of a value that have a small choice of values, whether or not the
// value has them yet. Pod templates are left out: how many pods there are is not decided there.
func (s Schemas) places(value any, schema map[string]any, path []string, depth int) []place {
	properties := Object(schema["properties"])
	switch {
	case depth > deepest || isPodTemplate(s, properties):
		return nil
	case len(choices(schema)) > 0:
		return []place{{slices.Clone(path), schema}}
	case schema["type"] == "array":
		return s.inList(value, schema, path)
	case schema["additionalProperties"] != nil:
		return s.inMap(value, schema, path)
	}
	var found []place
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		below, exists := Object(value)[name]
		deeper := depth + 1
		if exists {
			deeper = 0
		}
		found = append(found, s.places(below, s.Resolve(properties[name]), append(path, name), deeper)...)
	}
	return found
}

func (s Schemas) inList(value any, schema map[string]any, path []string) []place {
	var found []place
	list, _ := value.([]any)
	for i, item := range list {
		found = append(found, s.places(item, s.Resolve(schema["items"]), append(path, strconv.Itoa(i)), 0)...)
	}
	return found
}

func (s Schemas) inMap(value any, schema map[string]any, path []string) []place {
	var found []place
	for _, key := range slices.Sorted(maps.Keys(Object(value))) {
		found = append(found, s.places(Object(value)[key], s.Resolve(schema["additionalProperties"]), append(path, key), 0)...)
	}
	return found
}

func isPodTemplate(s Schemas, properties map[string]any) bool {
	return Object(s.Resolve(properties["spec"])["properties"])["containers"] != nil
}

// choices are values to try for a field.
func choices(schema map[string]any) []any {
	if values, _ := schema["enum"].([]any); len(values) > 0 {
		return values
	}
	switch schema["type"] {
	case "boolean":
		return []any{true, false}
	case "integer":
		return []any{int64(0), int64(1), int64(2), int64(3)}
	}
	return nil
}

// At returns the value at a path in an object of JSON, or nil. A number in the path is an index of a list.
func At(value any, path []string) any {
	for _, name := range path {
		switch v := value.(type) {
		case map[string]any:
			value = v[name]
		case []any:
			i, err := strconv.Atoi(name)
			if err != nil || i < 0 || i >= len(v) {
				return nil
			}
			value = v[i]
		default:
			return nil
		}
	}
	return value
}

// Set writes a value into an object of JSON, and creates the objects on the way. The index after the last of a list
// appends.
func Set(into any, path []string, value any) any {
	if len(path) == 0 {
		return value
	}
	if list, ok := into.([]any); ok {
		switch i, err := strconv.Atoi(path[0]); {
		case err == nil && i < len(list):
			list[i] = Set(list[i], path[1:], value)
		case err == nil && i == len(list):
			return append(list, Set(nil, path[1:], value))
		}
		return list
	}
	fields := Object(into)
	if fields == nil {
		fields = map[string]any{}
	}
	fields[path[0]] = Set(fields[path[0]], path[1:], value)
	return fields
}

// Vary sets some fields of a spec, and says which.
func (s Schemas) Vary(spec map[string]any, schema map[string]any, random *rand.Rand) []string {
	places := s.places(spec, schema, nil, 0)
	var changes []string
	for range 1 + random.IntN(4) {
		p := pick(places, random)
		values := choices(p.schema)
		value := values[random.IntN(len(values))]
		Set(spec, p.path, value)
		changes = append(changes, fmt.Sprintf("%s=%v", p, value))
	}
	return changes
}

// pick chooses field by field from the top, so that an object with many fields is not chosen more
// often than others.
func pick(places []place, random *rand.Rand) place {
	for i := 0; len(places) > 1; i++ {
		fields := map[string][]place{}
		for _, p := range places {
			fields[p.path[i]] = append(fields[p.path[i]], p)
		}
		names := slices.Sorted(maps.Keys(fields))
		places = fields[names[random.IntN(len(names))]]
	}
	return places[0]
}

// Object is a value as a JSON object; nil if it is none.
func Object(value any) map[string]any {
	fields, _ := value.(map[string]any)
	return fields
}
