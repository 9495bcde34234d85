// SPDX-License-Identifier: Apache-2.0

package runplan

import (
	"maps"
	"slices"
	"strings"

	"github.com/mlbatch/mlbatch/controller/api/codeflare/v1alpha1"
)

// variables are those of the Application and the Run, whose values count.
func variables(in Input) map[string]v1alpha1.Text {
	all := map[string]v1alpha1.Text{}
	maps.Copy(all, in.Application.Spec.Env)
	maps.Copy(all, in.Run.Spec.Env)
	return all
}

// prefixProblems are those of envFrom. No schema sees them: it would have to know how long a prefix may
// be. An operator whose pods are refused tries it again and again, with quota and without pods.
func prefixProblems(in Input) []Problem {
	var problems []Problem
	for _, source := range slices.Concat(in.Application.Spec.EnvFrom, in.Run.Spec.EnvFrom) {
		switch {
		case !beginsVariable(source.Prefix):
			problems = append(problems, impossible("the prefix %q of envFrom must have letters, digits, _, - and dots only, and not begin with a digit", source.Prefix))
		case strings.HasPrefix(source.Prefix, v1alpha1.ReservedVariables):
			problems = append(problems, impossible("the prefix %s of envFrom is the platform's: choose another one", source.Prefix))
		}
	}
	return problems
}

// beginsVariable tells whether the name of a variable may begin so, by the rule of the schema.
func beginsVariable(prefix string) bool {
	const letters, others = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_", "-.0123456789"
	return strings.Trim(prefix, letters+others) == "" && strings.IndexAny(prefix, others) != 0
}
