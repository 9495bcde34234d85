// SPDX-License-Identifier: Apache-2.0

package admissionrules

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/mlbatch/mlbatch/controller/internal/lifecycle"
)

// validateAnnotations refuses what the controller would have to replace by a
// default: better a refusal now than a surprise in the middle of a night.
func validateAnnotations(annotations map[string]string, path *field.Path) field.ErrorList {
	var problems field.ErrorList
	_, unclear := lifecycle.ParsePolicy(annotations, lifecycle.StandardDefaults())
	for _, p := range unclear {
		problems = append(problems, field.Invalid(path.Key(p.Annotation), p.Value, p.Message))
	}
	return problems
}
