// SPDX-License-Identifier: Apache-2.0

package config

import (
	"cmp"
	"encoding/json"
	"reflect"
	"slices"
	"strings"

	"github.com/mlbatch/mlbatch/controller/internal/spelling"
)

// keys are the paths of everything that a file may have; * is any key of a map, and
// [] any item of a list.
func keys(t reflect.Type, path string) []string {
	if reflect.PointerTo(t).Implements(reflect.TypeFor[json.Unmarshaler]()) {
		return nil
	}
	switch t.Kind() {
	case reflect.Pointer:
		return keys(t.Elem(), path)
	case reflect.Slice:
		return keys(t.Elem(), path+"[]")
	case reflect.Map:
		return keys(t.Elem(), path+".*")
	case reflect.Struct:
		return fieldKeys(t, path)
	}
	return nil
}

func fieldKeys(t reflect.Type, path string) []string {
	var all []string
	for _, field := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name == "" { // embedded: its fields are visible themselves
			continue
		}
		at := strings.TrimPrefix(path+"."+name, ".")
		all = append(append(all, at), keys(field.Type, at)...)
	}
	return all
}

// nearest is the known key that somebody most likely meant who wrote another one.
func nearest(key string, known []string) string {
	return slices.MinFunc(known, func(a, b string) int {
		return cmp.Or(
			cmp.Compare(spelling.Distance(last(a), last(key)), spelling.Distance(last(b), last(key))),
			cmp.Compare(spelling.Distance(a, key), spelling.Distance(b, key)),
		)
	})
}

func last(path string) string {
	return path[strings.LastIndexByte(path, '.')+1:]
}
