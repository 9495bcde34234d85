// SPDX-License-Identifier: Apache-2.0

package admissionrules

import (
	"fmt"
	"slices"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/internal/lifecycle"
)

// inherited are the annotations that a namespace may have for the AppWrappers in it.
var inherited = []string{v1beta2.NoProgressGracePeriodDurationAnnotation, v1beta2.IdleGracePeriodDurationAnnotation, v1beta2.LastWordsAnnotation}

// Inherit gives a new AppWrapper the annotations of its namespace that it does not have. A value that
// cannot be understood is left out: its author could not mend it.
func Inherit(aw *v1beta2.AppWrapper, namespace map[string]string) {
	for _, name := range inherited {
		value, given := namespace[name]
		_, chosen := aw.Annotations[name]
		if !given || chosen || unclear(name, value) != nil {
			continue
		}
		if aw.Annotations == nil {
			aw.Annotations = map[string]string{}
		}
		aw.Annotations[name] = value
	}
}

// WarningsOnInheritance are about annotations of a namespace that have no effect.
func WarningsOnInheritance(namespace map[string]string) []string {
	var warnings []string
	for _, name := range ours(namespace) {
		value := namespace[name]
		if !slices.Contains(inherited, name) {
			warnings = append(warnings, fmt.Sprintf("the annotation %s of the namespace has no effect: set it on each AppWrapper", name))
		} else if problem := unclear(name, value); problem != nil {
			warnings = append(warnings, fmt.Sprintf("of the namespace, %s; it has no effect: tell an administrator", problem))
		}
	}
	return warnings
}

// unclear is what is wrong with a value; nil if nothing is.
func unclear(name, value string) error {
	_, problems := lifecycle.ParsePolicy(map[string]string{name: value}, lifecycle.StandardDefaults())
	if len(problems) == 0 {
		return nil
	}
	return problems[0]
}
