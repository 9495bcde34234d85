// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"fmt"
	"math"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// integer reads a whole number of 32 bits. It accepts each Go type that decoders choose for
// numbers.
func integer(object map[string]any, fields ...string) (value int32, found bool, err error) {
	raw, found, err := unstructured.NestedFieldNoCopy(object, fields...)
	if err != nil || !found || raw == nil {
		return 0, false, err
	}
	wide, ok := whole(raw)
	if !ok {
		return 0, true, fmt.Errorf("%s is not a whole number of 32 bits", strings.Join(fields, "."))
	}
	return wide, true, nil
}

func whole(raw any) (int32, bool) {
	switch n := raw.(type) {
	case int32:
		return n, true
	case int:
		return narrow(int64(n))
	case int64:
		return narrow(n)
	case float64:
		if n != math.Trunc(n) || math.Abs(n) > math.MaxInt32 {
			return 0, false
		}
		return int32(n), true
	}
	return 0, false
}

func narrow(n int64) (int32, bool) {
	if n < math.MinInt32 || n > math.MaxInt32 {
		return 0, false
	}
	return int32(n), true
}

// replicas reads a number of replicas: 1 if absent.
func replicas(object map[string]any, fields ...string) (*int32, error) {
	n, found, err := integer(object, fields...)
	if err != nil {
		return nil, err
	}
	if !found {
		n = 1
	}
	return &n, nil
}

// times multiplies two numbers of pods.
func times(a, b int32) (int32, error) {
	product := int64(a) * int64(b)
	if product > math.MaxInt32 {
		return 0, fmt.Errorf("%d pods are more than the maximum of %d", product, math.MaxInt32)
	}
	if a < 0 || b < 0 {
		return 0, fmt.Errorf("%d × %d pods cannot be: numbers of pods must not be negative", a, b)
	}
	return int32(product), nil
}

// present tells whether the field exists, whatever its type. To the API server, null is as good as absent.
func present(object map[string]any, fields ...string) bool {
	value, found, err := unstructured.NestedFieldNoCopy(object, fields...)
	return found && err == nil && value != nil
}

// items are the objects in a list, each at its index; an item that is no object is nil.
func items(object map[string]any, fields ...string) []map[string]any {
	raw, _, _ := unstructured.NestedFieldNoCopy(object, fields...)
	list, _ := raw.([]any)
	objects := make([]map[string]any, len(list))
	for i := range list {
		objects[i], _ = list[i].(map[string]any)
	}
	return objects
}

// namesOf are the texts that each of these objects has in that field.
func namesOf(objects []map[string]any, fields ...string) []string {
	var names []string
	for _, object := range objects {
		names = append(names, text(object, fields...))
	}
	return names
}

// condition is the condition of that type in status.conditions, nil if absent.
func condition(object map[string]any, conditionType string) map[string]any {
	for _, c := range items(object, "status", "conditions") {
		if c["type"] == conditionType {
			return c
		}
	}
	return nil
}

// verdictFromConditions is the verdict of kinds that report their end with a condition, a failure with
// any of several.
func verdictFromConditions(succeeded string, failed ...string) func(map[string]any) Verdict {
	return func(object map[string]any) Verdict {
		if condition(object, succeeded)["status"] == "True" {
			return Succeeded
		}
		for _, f := range failed {
			if condition(object, f)["status"] == "True" {
				return Failed
			}
		}
		return Running
	}
}
