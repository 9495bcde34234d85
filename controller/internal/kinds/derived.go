// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
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
	// LabelKey may have a domain and a slash before it.
	LabelKey
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

// multiKueue as the manager of a resource sends it to another cluster, with a Workload of its own. What an AppWrapper
// wraps has none, so that it stays where it is, and nobody makes its pods.
const multiKueue = "kueue.x-k8s.io/multikueue"

// suspendedBy finds those of these fields that are true, or leave the resource to MultiKueue.
func suspendedBy(paths ...string) func(map[string]any) []string {
	return func(object map[string]any) (found []string) {
		for _, path := range paths {
			value, _, _ := unstructured.NestedFieldNoCopy(object, strings.Split(path, ".")...)
			if value == true || value == multiKueue {
				found = append(found, path)
			}
		}
		return found
	}
}

// Fault is a field of a resource with which its controller makes no pods.
type Fault struct {
	// Path leads to the field, such as spec.network.subdomain.
	Path  string
	Value string
	// Why is empty if the value is a name that may follow the rule.
	Why  string
	Rule NameRule
}

// Faults are those of a resource that its controller, or the API server, would report when nobody looks.
func (k Kind) Faults(template *unstructured.Unstructured) []Fault {
	if k.faults == nil {
		return nil
	}
	return k.faults(template.Object)
}

// badName is a fault if the name in a field does not follow the rule.
func badName(object map[string]any, rule NameRule, fields ...string) []Fault {
	name := text(object, fields...)
	if name == "" {
		return nil
	}
	return []Fault{{Path: strings.Join(fields, "."), Value: name, Rule: rule}}
}

// AddedVolumes are those that the pods of a resource have beside those of their templates.
func (k Kind) AddedVolumes(template *unstructured.Unstructured) []string {
	if k.volumes == nil {
		return nil
	}
	return k.volumes(template.Object)
}

// RestartPolicies are those that the pod templates may have, none if any will do.
func (k Kind) RestartPolicies() []corev1.RestartPolicy { return k.restartPolicies }

// The restart policies that templates of pods may have.
var (
	anyRestarts     = []corev1.RestartPolicy{corev1.RestartPolicyAlways, corev1.RestartPolicyOnFailure, corev1.RestartPolicyNever}
	restartsOfJobs  = []corev1.RestartPolicy{corev1.RestartPolicyOnFailure, corev1.RestartPolicyNever}
	restartsForGood = []corev1.RestartPolicy{corev1.RestartPolicyAlways}
)

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
