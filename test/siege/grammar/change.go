// SPDX-License-Identifier: Apache-2.0

package grammar

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/mlbatch/mlbatch/test/counted/variation"
)

// The types of patches.
const (
	Merge = "merge"
	JSON  = "json"
	Apply = "apply"
)

// change sets a field of an object, or removes it. A number in its path is an index of a list.
type change struct {
	path   []string
	value  any
	absent bool
}

func (c change) String() string {
	path := strings.Join(c.path, ".")
	if c.absent {
		return "no " + path
	}
	text := fmt.Sprint(c.value)
	if len(text) > 40 {
		text = text[:40] + "…"
	}
	return path + "=" + text
}

// changed is a copy of an object with changes.
func changed(object map[string]any, changes []change) map[string]any {
	after := runtime.DeepCopyJSON(object)
	for _, c := range changes {
		if c.absent {
			remove(after, c.path)
			continue
		}
		variation.Set(after, c.path, runtime.DeepCopyJSONValue(c.value))
	}
	return after
}

func remove(from any, path []string) {
	last := len(path) - 1
	switch parent := variation.At(from, path[:last]).(type) {
	case map[string]any:
		delete(parent, path[last])
	case []any:
		i, err := strconv.Atoi(path[last])
		if err != nil || i >= len(parent) || last == 0 {
			return
		}
		variation.Set(from, path[:last], slices.Delete(slices.Clone(parent), i, i+1))
	}
}

// patch returns the body of a patch that turns one object into the other. An API server may have stored neither.
func patch(kind string, before, after map[string]any, changes []change) any {
	switch kind {
	case Merge:
		return mergePatch(before, after, changes)
	case JSON:
		return jsonPatch(before, after, changes)
	}
	return after
}

// mergePatch replaces lists as a whole: this sort of patch knows no other way.
func mergePatch(before, after map[string]any, changes []change) map[string]any {
	body := map[string]any{}
	for _, c := range changes {
		depth := len(c.path)
		for i := range c.path {
			if _, list := variation.At(before, c.path[:i]).([]any); list {
				depth = i
				break
			}
		}
		variation.Set(body, c.path[:depth], variation.At(after, c.path[:depth]))
	}
	return body
}

// jsonPatch adds what is missing on the way to a field together with it. It removes only what is there: otherwise, the
// API server would refuse all of it.
func jsonPatch(before, after map[string]any, changes []change) []any {
	operations := []any{}
	for _, c := range changes {
		depth := 1
		for depth < len(c.path) && variation.At(before, c.path[:depth]) != nil {
			depth++
		}
		path := c.path[:depth]
		operation := map[string]any{"op": "add", "path": pointer(path)}
		switch {
		case c.absent && variation.At(before, c.path) == nil:
			continue
		case c.absent:
			operation["op"], operation["path"] = "remove", pointer(c.path)
		case variation.At(before, path) != nil:
			operation["op"], operation["value"] = "replace", variation.At(after, path)
		default:
			operation["value"] = variation.At(after, path)
		}
		operations = append(operations, operation)
	}
	return operations
}

var escaped = strings.NewReplacer("~", "~0", "/", "~1")

func pointer(path []string) (text string) {
	for _, name := range path {
		text += "/" + escaped.Replace(name)
	}
	return text
}

// below puts changes of what is inside an object into paths of that object.
func below(path []string, changes []change) []change {
	for i := range changes {
		changes[i].path = slices.Concat(path, changes[i].path)
	}
	return changes
}

func keys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
