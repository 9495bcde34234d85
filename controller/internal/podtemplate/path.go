// SPDX-License-Identifier: Apache-2.0

// Package podtemplate answers two questions about a wrapped resource: which pod template
// does the path of a pod set lead to, and how is it edited before the resource is created?
// It works on decoded JSON and may not talk to anything.
package podtemplate

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// root begins every path: the component's template object.
const root = "template"

// Find returns the pod template that the path leads to in a component's template object: a
// map with a strictly valid pod spec. It is part of the object, so editing it edits the
// object.
func Find(object map[string]any, path string) (map[string]any, error) {
	value, err := lookup(object, path)
	if err != nil {
		return nil, fmt.Errorf("path %q: %w", path, err)
	}
	template, ok := value.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("path %q does not lead to an object", path)
	}
	if err := checkSpec(template); err != nil {
		if spec, ok := template["spec"].(map[string]any); ok && spec["containers"] != nil {
			return nil, &SpecError{Path: path, Spec: spec, Err: err}
		}
		return nil, fmt.Errorf("path %q does not lead to a pod template: %w", path, err)
	}
	return template, nil
}

// SpecError says that the spec of a pod template cannot be decoded, or has an unknown field.
type SpecError struct {
	Path string
	Spec map[string]any
	Err  error
}

func (e *SpecError) Error() string {
	return fmt.Sprintf("the pod template at %q is not valid: %v", e.Path, e.Err)
}

func (e *SpecError) Unwrap() error { return e.Err }

// checkSpec refuses what is not a pod template. It refuses unknown fields, too: a misspelled
// one would be dropped silently and the pods would lack it.
func checkSpec(template map[string]any) error {
	raw, found := template["spec"]
	if !found {
		return errors.New("it has no spec")
	}
	spec, ok := raw.(map[string]any)
	if !ok {
		return errors.New("its spec is not an object")
	}
	return runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(spec, &corev1.PodSpec{}, true)
}

// lookup follows a path: "template", then any number of ".field" and "[index]".
// A field ends at the next "." or "[". There is no quoting, so a path cannot reach a key that
// contains one of these characters.
func lookup(object map[string]any, path string) (any, error) {
	rest, ok := strings.CutPrefix(path, root)
	if !ok || (rest != "" && rest[0] != '.' && rest[0] != '[') {
		return nil, fmt.Errorf("must begin with %q", root)
	}
	var value any = object
	for rest != "" {
		var err error
		value, rest, err = step(value, rest)
		if err != nil {
			return nil, err
		}
	}
	return value, nil
}

func step(value any, path string) (next any, rest string, err error) {
	switch path[0] {
	case '.':
		return stepField(value, path[1:])
	case '[':
		return stepIndex(value, path[1:])
	}
	return nil, "", fmt.Errorf("unexpected %q", path)
}

func stepField(value any, path string) (next any, rest string, err error) {
	end := strings.IndexAny(path, ".[")
	if end < 0 {
		end = len(path)
	}
	field := path[:end]
	object, ok := value.(map[string]any)
	if !ok {
		return nil, "", fmt.Errorf("cannot look up field %q in something that is not an object", field)
	}
	next, ok = object[field]
	if !ok {
		return nil, "", fmt.Errorf("there is no field %q", field)
	}
	return next, path[end:], nil
}

func stepIndex(value any, path string) (next any, rest string, err error) {
	digits, rest, closed := strings.Cut(path, "]")
	if !closed {
		return nil, "", fmt.Errorf("%q is not closed", "["+path)
	}
	index, err := strconv.ParseUint(digits, 10, 31)
	if err != nil {
		return nil, "", fmt.Errorf("%q is not an index", digits)
	}
	list, ok := value.([]any)
	if !ok {
		return nil, "", fmt.Errorf("cannot look up index %d in something that is not a list", index)
	}
	if index >= uint64(len(list)) {
		return nil, "", fmt.Errorf("index %d is out of bounds: the list has %d items", index, len(list))
	}
	return list[index], rest, nil
}
