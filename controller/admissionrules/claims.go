// SPDX-License-Identifier: Apache-2.0

package admissionrules

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

var claimKind = schema.GroupKind{Kind: "PersistentVolumeClaim"}

// wrappedClaims are warnings about claims, which do not survive a retry.
func (d Decoded) wrappedClaims() []string {
	var warnings []string
	for i, template := range d.Templates {
		if template == nil || template.GroupVersionKind().GroupKind() != claimKind {
			continue
		}
		warnings = append(warnings, fmt.Sprintf("%s is a PersistentVolumeClaim, which is deleted with every retry, migration and suspension: "+
			"keep checkpoints on a claim that is not wrapped", field.NewPath("spec", "components").Index(i).Child("template")))
	}
	return warnings
}
