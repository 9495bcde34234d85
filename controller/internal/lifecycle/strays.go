// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
)

// removeStrays removes what exists although nothing is deployed. It was created after the end of its attempt: by a
// leader that was paused right before the request, and went on after another one had taken over, or by a slow API
// server. It has no quota, and what the next attempt creates under the same names may differ.
func (v *view) removeStrays() (d Decision, none bool) {
	begun := v.isTrue(v1beta2.DeletingResources)
	strays := v.where(func(i int) bool {
		return v.Components[i].Exists && v.componentCondition(i, v1beta2.ResourcesDeployed) != nil
	})
	if len(strays) == 0 && !begun {
		return Decision{}, true
	}
	d, none = v.tearDown()
	if !begun {
		first := v.Components[strays[0]]
		d = d.announcing(strayEvent(first.Kind + " " + first.Name + " was created after its attempt had ended, without quota, and is removed"))
	}
	return d, none
}
