// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"fmt"
	"math"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// integer reads a whole number that fits 32 bits. Decoders differ in the Go type
// they choose for a number, so all of those are understood.
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

// replicas reads a number of replicas: 1 where it is absent.
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

// present tells whether the field exists, of whatever type.
func present(object map[string]any, fields ...string) bool {
	_, found, err := unstructured.NestedFieldNoCopy(object, fields...)
	return found && err == nil
}

// items are the objects in a list, each at its index; what is no object is empty.
func items(object map[string]any, fields ...string) []map[string]any {
	raw, _, _ := unstructured.NestedFieldNoCopy(object, fields...)
	list, _ := raw.([]any)
	objects := make([]map[string]any, len(list))
	for i := range list {
		objects[i], _ = list[i].(map[string]any)
	}
	return objects
}

// conditionIsTrue tells whether status.conditions has a condition of that type
// with status True.
func conditionIsTrue(object map[string]any, conditionType string) bool {
	raw, _, _ := unstructured.NestedFieldNoCopy(object, "status", "conditions")
	conditions, _ := raw.([]any)
	for _, c := range conditions {
		if c, ok := c.(map[string]any); ok && c["type"] == conditionType && c["status"] == "True" {
			return true
		}
	}
	return false
}

// verdictFromConditions is the verdict of the many kinds that end with a condition.
func verdictFromConditions(succeeded, failed string) func(map[string]any) Verdict {
	return func(object map[string]any) Verdict {
		if conditionIsTrue(object, succeeded) {
			return Succeeded
		}
		if conditionIsTrue(object, failed) {
			return Failed
		}
		return Running
	}
}
