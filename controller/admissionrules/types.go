// SPDX-License-Identifier: Apache-2.0

package admissionrules

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/kubernetes/scheme"
	kubernetesjson "sigs.k8s.io/json"
)

// wrongTypes lists the values that the API server could not decode, such as a number in the data of a
// ConfigMap. Of kinds that are not Kubernetes' own, it knows the metadata. About unknown fields,
// which the API server drops, unknownFields warns.
func wrongTypes(template *unstructured.Unstructured, path *field.Path) field.ErrorList {
	object, err := scheme.Scheme.New(template.GroupVersionKind())
	if err != nil {
		object = &metav1.PartialObjectMetadata{}
	}
	err = decodeAs(template.Object, object)
	if err == nil {
		return nil
	}
	if problems := misfits(template.Object, reflect.TypeOf(object).Elem(), path); len(problems) > 0 {
		return problems
	}
	return field.ErrorList{field.Invalid(path, template.GetKind(), err.Error())}
}

// mostUnknown is how many fields are named of a component: more say nothing new.
const mostUnknown = 3

// unknownFields are warnings about fields that the API server would drop, most likely because they are misspelt.
// Those of pod templates are refused.
func (d Decoded) unknownFields() []string {
	var warnings []string
	for i, template := range d.Templates {
		if template == nil {
			continue
		}
		object, err := scheme.Scheme.New(template.GroupVersionKind())
		if err != nil {
			continue
		}
		unknown := strays(template.Object, reflect.TypeOf(object).Elem(), field.NewPath("spec", "components").Index(i).Child("template"))
		for _, path := range unknown[:min(len(unknown), mostUnknown)] {
			warnings = append(warnings, fmt.Sprintf("%s has no effect: a %s has no such field", path, template.GetKind()))
		}
	}
	return warnings
}

// strays finds the fields that a type does not have.
func strays(value any, into reflect.Type, path *field.Path) (unknown []*field.Path) {
	if into = pointedTo(into); decodesItself(into) {
		return nil
	}
	switch v := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			unknown = append(unknown, straysIn(v[key], into, key, path)...)
		}
	case []any:
		for i := range v {
			if into.Kind() == reflect.Slice {
				unknown = append(unknown, strays(v[i], into.Elem(), path.Index(i))...)
			}
		}
	}
	return unknown
}

func straysIn(value any, object reflect.Type, key string, path *field.Path) []*field.Path {
	switch object.Kind() {
	case reflect.Map:
		return strays(value, object.Elem(), path.Key(key))
	case reflect.Struct:
		if inner := fieldOf(object, key); inner != nil {
			return strays(value, inner, path.Child(key))
		}
		return []*field.Path{path.Child(key)}
	}
	return nil
}

// decodeAs decodes a value as the API server does.
func decodeAs(value, into any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("cannot encode it: %w", err)
	}
	return kubernetesjson.UnmarshalCaseSensitivePreserveInts(text, into)
}

// misfits finds the values that do not decode into a type. It goes down as far as it can, to name each of them.
func misfits(value any, into reflect.Type, path *field.Path) field.ErrorList {
	into = pointedTo(into)
	if !decodesItself(into) {
		switch v := value.(type) {
		case map[string]any:
			if into.Kind() == reflect.Struct || into.Kind() == reflect.Map {
				return misfitsInObject(v, into, path)
			}
		case []any:
			if into.Kind() == reflect.Slice {
				return misfitsInList(v, into, path)
			}
		}
	}
	if err := decodeAs(value, reflect.New(into).Interface()); err != nil {
		return field.ErrorList{field.TypeInvalid(path, jsonType(value), wanted(into, err))}
	}
	return nil
}

func misfitsInObject(object map[string]any, into reflect.Type, path *field.Path) field.ErrorList {
	var problems field.ErrorList
	for _, key := range slices.Sorted(maps.Keys(object)) {
		if into.Kind() == reflect.Map {
			problems = append(problems, misfits(object[key], into.Elem(), path.Key(key))...)
		} else if inner := fieldOf(into, key); inner != nil {
			problems = append(problems, misfits(object[key], inner, path.Child(key))...)
		}
	}
	return problems
}

func misfitsInList(list []any, into reflect.Type, path *field.Path) field.ErrorList {
	var problems field.ErrorList
	for i := range list {
		problems = append(problems, misfits(list[i], into.Elem(), path.Index(i))...)
	}
	return problems
}

// fieldOf is the type of the field that JSON calls by this name, or nil.
func fieldOf(object reflect.Type, name string) reflect.Type {
	for f := range object.Fields() {
		tag, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if tag == name {
			return f.Type
		}
		if inner := pointedTo(f.Type); tag == "" && (f.Anonymous || options == "inline") && inner.Kind() == reflect.Struct {
			if found := fieldOf(inner, name); found != nil {
				return found
			}
		}
	}
	return nil
}

func pointedTo(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t
}

// decodesItself: JSON does not show what is in a value of this type, such as an amount.
func decodesItself(t reflect.Type) bool {
	return reflect.PointerTo(t).Implements(reflect.TypeFor[json.Unmarshaler]()) || t == reflect.TypeFor[runtime.RawExtension]()
}

// jsonType is what messages call a value. They do not repeat it: it may be a secret.
func jsonType(value any) string {
	switch value.(type) {
	case map[string]any:
		return "object"
	case []any:
		return "list"
	case string:
		return "string"
	case bool:
		return "boolean"
	}
	return "number"
}

func wanted(into reflect.Type, err error) string {
	switch into.Kind() {
	case reflect.String:
		return `must be a string: write it in quotes, "like this"`
	case reflect.Bool:
		return "must be true or false, without quotes"
	case reflect.Int32, reflect.Int64:
		return fmt.Sprintf("must be a whole number of %d bits, without quotes", into.Bits())
	case reflect.Slice:
		if into.Elem().Kind() == reflect.Uint8 {
			return "must be text in base64: for plain text, use stringData"
		}
		return "must be a list"
	case reflect.Map, reflect.Struct:
		if !decodesItself(into) {
			return "must be an object with fields"
		}
	}
	if into == reflect.TypeFor[resource.Quantity]() {
		return "must be an amount: a number, and a unit such as m, k, M, G, Ki, Mi or Gi"
	}
	return "cannot be decoded: " + err.Error()
}
