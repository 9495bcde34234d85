// SPDX-License-Identifier: Apache-2.0

package referee

import "strings"

// Known is something that docs/security.md leaves open.
type Known struct {
	Rule string
	// Object begins the object of the finding, with its kind.
	Object string
	// Says is a sentence of docs/security.md.
	Says string
}

// known is all that is excused. What is not here fails the siege.
var known = []Known{
	{"no-quota", "RayJob ", "The submitter of a RayJob that is not wrapped may run on, with CPU and memory, after the RayJob has failed and its quota is released."},
}

func (k Known) explains(f Finding) bool {
	return k.Rule == f.Rule && strings.HasPrefix(f.Object, k.Object)
}

func (r *Referee) unexcused(all []Finding) (rest []Finding) {
	if r.Excused == nil {
		r.Excused = map[string]int{}
	}
	for _, f := range all {
		reason := ""
		for _, k := range known {
			if k.explains(f) {
				reason = k.Says
			}
		}
		if reason == "" {
			rest = append(rest, f)
			continue
		}
		r.Excused[reason]++
	}
	return rest
}
