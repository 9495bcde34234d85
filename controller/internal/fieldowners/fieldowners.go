// SPDX-License-Identifier: Apache-2.0

// Package fieldowners decides whose record of who wrote which field the API server keeps.
package fieldowners

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Needed tells whether somebody applies the object on the server's side, which compares with the record.
//
// For all others the record is of little use and costs two fifths of each write, by whomever
// (docs/evidence/performance.md). The API server keeps none for an object that was created without one, until
// somebody applies it: https://kubernetes.io/docs/reference/using-api/server-side-apply/#clearing-managedfields
func Needed(record []metav1.ManagedFieldsEntry) bool {
	return slices.ContainsFunc(record, func(f metav1.ManagedFieldsEntry) bool { return f.Operation == metav1.ManagedFieldsOperationApply })
}
