// SPDX-License-Identifier: Apache-2.0

package admissionrules

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/mlbatch/mlbatch/controller/internal/kinds"
)

// Endless has the indices of the components that never succeed, beside one that can: the AppWrapper does not, either.
// Without one that can, it is a service, and runs until it is deleted.
func (d Decoded) Endless() []int {
	var endless []int
	ends := false
	for i, template := range d.Templates {
		if template == nil {
			continue
		}
		kind := kinds.For(template.GroupVersionKind())
		if kind.NeverSucceeds(template) {
			endless = append(endless, i)
		}
		ends = ends || kind.CanSucceed(template)
	}
	if !ends {
		return nil
	}
	return endless
}

// endless are warnings about such components.
func (d Decoded) endless() []string {
	var warnings []string
	for _, i := range d.Endless() {
		instead := "use a kind that ends, such as a Job"
		if d.Templates[i].GetKind() == "Pod" {
			instead = "set its restartPolicy to Never"
		}
		warnings = append(warnings, fmt.Sprintf("%s is a %s that runs until it is deleted: the AppWrapper does not succeed when its other components have, and keeps its quota; "+
			"delete it then, or %s", field.NewPath("spec", "components").Index(i).Child("template"), d.Templates[i].GetKind(), instead))
	}
	return warnings
}
