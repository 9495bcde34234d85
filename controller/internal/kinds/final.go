// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Final is why a resource that has failed would fail again: a deadline or a policy that its author has set, or its
// operator calls it invalid. It is the operator's word for that, and empty if another attempt may succeed.
func (k Kind) Final(object *unstructured.Unstructured) string {
	if k.finalReason == nil || k.Verdict(object) != Failed {
		return ""
	}
	return k.finalReason(object.Object)
}

// FailedBy is the Job that has failed a resource, if that only names it: its reason counts, too.
func (k Kind) FailedBy(object *unstructured.Unstructured) (Kind, string) {
	if k.failedBy == nil || k.Verdict(object) != Failed {
		return Kind{}, ""
	}
	return job, k.failedBy(object.Object)
}

// mostWords is how much of what an operator says goes into a message.
const mostWords = 500

// saying adds the operator's words to its reason: of what is not valid, nothing else says what that is.
func saying(reason, words string) string {
	words = strings.Join(strings.Fields(words), " ")
	if reason != validationFailed || words == "" {
		return reason
	}
	return reason + ": " + strings.ToValidUTF8(words[:min(len(words), mostWords)], "")
}

// finalReasons are those that any of these conditions may have.
func finalReasons(conditions []string, reasons ...string) func(map[string]any) string {
	return func(object map[string]any) string {
		for _, c := range conditions {
			found := condition(object, c)
			if reason := text(found, "reason"); slices.Contains(reasons, reason) {
				return saying(reason, text(found, "message"))
			}
		}
		return ""
	}
}

// deadlineExceeded is the word of most operators for a deadline in the spec.
const deadlineExceeded = "DeadlineExceeded"

// kubeflowDeadline: the training operator has one reason for all failures, and says the rest in words.
func kubeflowDeadline(object map[string]any) string {
	failed := condition(object, "Failed")
	message, _ := failed["message"].(string)
	if failed["reason"] == deadlineExceeded || strings.Contains(message, "longer than specified deadline") {
		return deadlineExceeded
	}
	return ""
}

// statusReason is status.reason, if it is one of these.
func statusReason(reasons ...string) func(map[string]any) string {
	return func(object map[string]any) string {
		reason, _, _ := unstructured.NestedString(object, "status", "reason")
		if slices.Contains(reasons, reason) {
			return reason
		}
		return ""
	}
}
