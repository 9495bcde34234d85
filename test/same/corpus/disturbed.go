// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	_ "embed" // the objects
	"fmt"
	"slices"
	"strings"
)

//go:embed disturbed.yaml
var disturbed []byte

// Disturbed are objects that somebody disturbs while they run.
func Disturbed() (all []Case, err error) {
	objects, err := decode(disturbed)
	for _, o := range objects {
		lines := strings.Split(strings.TrimSpace(o.GetAnnotations()[disturb]), "\n")
		o.SetAnnotations(nil)
		for i, line := range lines {
			all = append(all, Case{Name: fmt.Sprintf("disturbed-%s-%02d", o.GetName(), i), What: line, Disturb: line, Object: o.DeepCopy()})
		}
	}
	return all, err
}

// Moves reports whether the disturbance takes pods that run, so that what controls them has to make others.
func (c Case) Moves() bool {
	action, at, _ := strings.Cut(c.Disturb, " ")
	return strings.HasPrefix(at, "ready") && slices.Contains([]string{"delete", "drain", "lose"}, action)
}

// Loses reports whether a node is lost.
func (c Case) Loses() bool { return strings.HasPrefix(c.Disturb, "lose ") }
