// SPDX-License-Identifier: Apache-2.0

package admissionrules

import (
	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/internal/kinds"
)

// DeclarePodSets writes into the components the pod sets that Kueue would not find, or
// would count in another way. Until our controller has written the status Kueue has
// nothing else to go by, and might admit the AppWrapper with a part of its quota. Pod
// sets that are declared as AppWrapper 1.2 counted them are counted anew.
// Where nothing can be found, nothing is declared: validation says why.
func DeclarePodSets(aw *v1beta2.AppWrapper) {
	for i := range aw.Spec.Components {
		component := &aw.Spec.Components[i]
		template, err := Template(component)
		if err != nil {
			continue
		}
		kind := kinds.For(template.GroupVersionKind())
		if len(component.DeclaredPodSets) > 0 {
			component.DeclaredPodSets = kind.Recount(component.DeclaredPodSets, template)
			continue
		}
		if !kind.MustDeclare(template) {
			continue
		}
		if podSets, err := kind.InferPodSets(template); err == nil {
			component.DeclaredPodSets = podSets
		}
	}
}
