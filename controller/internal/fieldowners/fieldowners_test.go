// SPDX-License-Identifier: Apache-2.0

package fieldowners

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestTheRecordIsNeededByWhoAppliesOnTheServer(t *testing.T) {
	applied := metav1.ManagedFieldsEntry{Manager: "kubectl", Operation: metav1.ManagedFieldsOperationApply}
	created := metav1.ManagedFieldsEntry{Manager: "kubectl-create", Operation: metav1.ManagedFieldsOperationUpdate}
	for name, tc := range map[string]struct {
		record []metav1.ManagedFieldsEntry
		want   bool
	}{
		"there is none":               {},
		"created":                     {record: []metav1.ManagedFieldsEntry{created}},
		"applied":                     {record: []metav1.ManagedFieldsEntry{applied}, want: true},
		"created, and applied since":  {record: []metav1.ManagedFieldsEntry{created, applied}, want: true},
		"sent as Apply, named Update": {record: []metav1.ManagedFieldsEntry{{Manager: "Apply", Operation: metav1.ManagedFieldsOperationUpdate}}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Needed(tc.record); got != tc.want {
				t.Errorf("it is needed: %t", got)
			}
		})
	}
}
