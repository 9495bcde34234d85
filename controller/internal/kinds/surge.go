// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"strconv"
	"strings"
)

// withoutSurge makes a Deployment delete a pod before it creates another in its place: Kueue has given quota only for
// the pods that it declares. Where its author allows no pod to be unavailable, one is.
func withoutSurge(object map[string]any) {
	spec, _ := object["spec"].(map[string]any)
	strategy := mapIn(spec, "strategy")
	if strategy == nil || strategy["type"] == "Recreate" {
		return
	}
	rolling := mapIn(strategy, "rollingUpdate")
	if rolling == nil {
		return
	}
	rolling["maxSurge"] = int64(0)
	if none(rolling["maxUnavailable"]) && rolling["maxUnavailable"] != nil {
		rolling["maxUnavailable"] = int64(1)
	}
}

// withoutSurgingGroups does so for a LeaderWorkerSet, which has no surge unless its author says so. A share of
// unavailable groups is rounded down, and its webhook refuses none beside no surge.
func withoutSurgingGroups(object map[string]any) {
	spec, _ := object["spec"].(map[string]any)
	strategy, _ := spec["rolloutStrategy"].(map[string]any)
	rolling, _ := strategy["rollingUpdateConfiguration"].(map[string]any)
	if !none(rolling["maxSurge"]) {
		rolling["maxSurge"], rolling["maxUnavailable"] = int64(0), int64(1)
	}
}

// none tells whether this many pods, or this share of them, is none.
func none(amount any) bool {
	if n, isNumber := whole(amount); isNumber {
		return n == 0
	}
	text, _ := amount.(string)
	digits, isShare := strings.CutSuffix(text, "%")
	n, err := strconv.Atoi(digits)
	return amount == nil || isShare && err == nil && n == 0
}

// mapIn is the object in a field, which is made if the field is absent; nil if the field has something else.
func mapIn(object map[string]any, field string) map[string]any {
	if object == nil {
		return nil
	}
	if object[field] == nil {
		object[field] = map[string]any{}
	}
	inner, _ := object[field].(map[string]any)
	return inner
}
