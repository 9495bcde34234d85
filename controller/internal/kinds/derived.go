// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// NameRule says which characters a name may have.
type NameRule int

// All of these names have at most 63 characters.
const (
	// LabelValue also has dots and capital letters.
	LabelValue NameRule = iota
	// HostName has small letters, digits and dashes.
	HostName
	// ServiceName begins with a letter, too.
	ServiceName
)

// Derived is a name that the controller of a resource makes of the resource's own, the longest of its
// sort. If there can be no such name, the resource gets no pods.
type Derived struct {
	// Suffix follows the name of the resource.
	Suffix string
	// Of is the object, such as "the Service of its last Worker".
	Of   string
	Rule NameRule
}

// Derived are the names that are made of the name of a resource.
func (k Kind) Derived(template *unstructured.Unstructured) []Derived {
	if k.derived == nil {
		return nil
	}
	return k.derived(template.Object)
}

// Suspended are the fields of a resource that keep it from making pods. Only the AppWrapper
// suspends its work: nobody else would start it.
func (k Kind) Suspended(template *unstructured.Unstructured) []string {
	if k.suspended == nil {
		return nil
	}
	return k.suspended(template.Object)
}

// suspendedBy finds those of these fields that are true.
func suspendedBy(paths ...string) func(map[string]any) []string {
	return func(object map[string]any) (found []string) {
		for _, path := range paths {
			if is, _, _ := unstructured.NestedBool(object, strings.Split(path, ".")...); is {
				found = append(found, path)
			}
		}
		return found
	}
}

// MainContainer is the container that each pod template must have, "" if it may have any.
func (k Kind) MainContainer() string { return k.container }

// namedAfterItsPods: the name becomes the value of a label of each pod.
var namedAfterItsPods = Derived{Of: "a label of each of its pods", Rule: LabelValue}

// last is the suffix of the last of so many; of the first if there is none.
func last(count int32) string {
	return "-" + strconv.Itoa(int(max(count-1, 0)))
}

// number is a number of a resource, or 1 if it has none that makes sense: other rules refuse it.
func number(object map[string]any, fields ...string) int32 {
	n, found, err := integer(object, fields...)
	if err != nil || !found {
		return 1
	}
	return n
}

// text is a string of a resource.
func text(object map[string]any, fields ...string) string {
	s, _, _ := unstructured.NestedString(object, fields...)
	return s
}
