// SPDX-License-Identifier: Apache-2.0

// Package changes is pure. It answers: what would an upgrade change in the objects of a release? It compares what
// the chart rendered last with what it would render now, and does not know what the cluster has.
package changes

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Change is an object that an upgrade creates, deletes, or writes.
type Change struct {
	Object string
	What   What
	// Fields are those that differ, if the object is in both releases.
	Fields []Field
}

// What becomes of an object.
type What string

// An object that the next release does not have is removed, unless it says that it is to be kept.
const (
	Added   What = "added"
	Changed What = "changed"
	Removed What = "removed"
	Kept    What = "kept"
)

// Field is a value in one line; it is empty if there is none.
type Field struct{ Path, Before, After string }

// Between returns the changes, sorted by object.
func Between(before, after []*unstructured.Unstructured) []Change {
	old, new := byID(before), byID(after)
	var all []Change
	for id, o := range old {
		next, stays := new[id]
		switch fields := fieldsBetween(o, next); {
		case !stays && o.GetAnnotations()["helm.sh/resource-policy"] == "keep":
			all = append(all, Change{id, Kept, nil})
		case !stays:
			all = append(all, Change{id, Removed, nil})
		case len(fields) > 0:
			all = append(all, Change{id, Changed, fields})
		}
	}
	for id := range new {
		if _, was := old[id]; !was {
			all = append(all, Change{id, Added, nil})
		}
	}
	slices.SortFunc(all, func(a, b Change) int { return cmp.Compare(a.Object, b.Object) })
	return all
}

// byID names objects by group, because an object stays the same if only its version changes.
func byID(objects []*unstructured.Unstructured) map[string]*unstructured.Unstructured {
	all := map[string]*unstructured.Unstructured{}
	for _, o := range objects {
		name := o.GetName()
		if o.GetNamespace() != "" {
			name = o.GetNamespace() + "/" + name
		}
		group, _ := schema.ParseGroupVersion(o.GetAPIVersion())
		all[strings.TrimSuffix(o.GetKind()+"."+group.Group, ".")+" "+name] = o
	}
	return all
}

// ofRelease are labels that every release changes in every object.
var ofRelease = []string{"metadata.labels[app.kubernetes.io/version]", "metadata.labels[helm.sh/chart]"}

func fieldsBetween(before, after *unstructured.Unstructured) []Field {
	if after == nil {
		return nil
	}
	old, new := map[string]string{}, map[string]string{}
	flatten(old, "", before.Object)
	flatten(new, "", after.Object)
	paths := maps.Clone(old)
	maps.Copy(paths, new)
	var fields []Field
	for _, path := range slices.Sorted(maps.Keys(paths)) {
		if old[path] == new[path] || slices.Contains(ofRelease, path) {
			continue
		}
		f := Field{path, old[path], new[path]}
		if before.GetKind() == "Secret" && !strings.HasPrefix(path, "metadata") {
			f.Before, f.After = hidden(f.Before), hidden(f.After)
		}
		fields = append(fields, f)
	}
	return fields
}

func hidden(value string) string {
	if value == "" {
		return ""
	}
	return "(hidden)"
}

// flatten writes every value that is no section by its path. Items with a name are found by it.
func flatten(into map[string]string, path string, value any) {
	switch v := value.(type) {
	case map[string]any:
		for key, child := range v {
			flatten(into, join(path, key), child)
		}
		if len(v) == 0 {
			into[path] = "{}"
		}
	case []any:
		for i, item := range v {
			flatten(into, path+"["+nameOf(i, item)+"]", item)
		}
		if len(v) == 0 {
			into[path] = "[]"
		}
	default:
		text, err := json.Marshal(v)
		if err != nil {
			text = []byte(fmt.Sprint(v))
		}
		into[path] = string(text)
	}
}

// join writes keys with dots, such as those of labels, in brackets.
func join(path, key string) string {
	switch {
	case strings.ContainsAny(key, "./"):
		return path + "[" + key + "]"
	case path == "":
		return key
	}
	return path + "." + key
}

func nameOf(index int, item any) string {
	if fields, is := item.(map[string]any); is {
		if name, is := fields["name"].(string); is && name != "" {
			return name
		}
	}
	return fmt.Sprint(index)
}
