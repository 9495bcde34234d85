// SPDX-License-Identifier: Apache-2.0

package fakeapiserver

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
)

// selection is what a list or a watch is about.
type selection struct {
	namespace string
	labels    labels.Selector
	fields    fields.Selector
}

func (q request) selection() (s selection, err error) {
	s.namespace = q.key.Namespace
	if s.labels, err = labels.Parse(q.URL.Query().Get("labelSelector")); err != nil {
		return s, err
	}
	s.fields, err = fields.ParseSelector(q.URL.Query().Get("fieldSelector"))
	return s, err
}

func (s selection) has(o *Object) bool {
	return (s.namespace == "" || o.Namespace == s.namespace) && s.labels.Matches(labels.Set(o.Labels)) && (s.fields.Empty() || s.fields.Matches(fieldsOf{o}))
}

// fieldsOf are the fields by which an object can be selected: all of them.
type fieldsOf struct{ *Object }

// Has is always true: a field that is not there is empty.
func (fieldsOf) Has(string) bool { return true }

// Get is a field as text.
func (o fieldsOf) Get(path string) string {
	switch path {
	case "metadata.name":
		return o.Name
	case "metadata.namespace":
		return o.Namespace
	}
	first, rest, _ := strings.Cut(path, ".")
	var value any
	if json.Unmarshal(o.Fields[first], &value) != nil {
		return ""
	}
	for name := range strings.SplitSeq(rest, ".") {
		if inner, is := value.(map[string]any); is {
			value = inner[name]
		}
	}
	if value == nil {
		return ""
	}
	return fmt.Sprint(value)
}

// selected are the objects of a selection, in the order of a real server, and the version of the whole.
func (s *Server) selected(resource string, which selection) (items [][]byte, version int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []*Object
	for _, object := range s.stored[resource] {
		if which.has(object) {
			all = append(all, object)
		}
	}
	slices.SortFunc(all, func(a, b *Object) int { return cmp.Compare(a.Namespace+"/"+a.Name, b.Namespace+"/"+b.Name) })
	for _, object := range all {
		items = append(items, object.text)
	}
	return items, s.version
}
