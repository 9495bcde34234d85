// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"

	"github.com/mlbatch/mlbatch/controller/admissionrules"
	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
)

// neverEnds is about components that never end beside one that does.
func neverEnds(o Objects) []Cause {
	if o.AppWrapper == nil || o.AppWrapper.Status.Phase != v1beta2.AppWrapperRunning {
		return nil
	}
	decoded := admissionrules.Decode(o.AppWrapper)
	var seen []Evidence
	for _, i := range decoded.Endless() {
		seen = append(seen, Evidence{o.wrapper(), fmt.Sprintf("spec.components[%d].template.kind", i), decoded.Templates[i].GetKind()})
	}
	if len(seen) == 0 {
		return nil
	}
	return []Cause{cause("NeverEnds", seen[0], also(seen[1:]...))}
}
