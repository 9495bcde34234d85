// SPDX-License-Identifier: Apache-2.0

package appwrapper

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/internal/lifecycle"
)

// mayBeStray: an attempt is about to begin after an earlier one, and no cache would have shown that component i
// exists.
func (o *observation) mayBeStray(i int, d lifecycle.Decision) bool {
	deployed := deployedCondition(o.aw, i)
	begins := o.snapshot.Status.Phase == v1beta2.AppWrapperSuspended && d.Moved(o.snapshot)
	return begins && deployed != nil && o.components[i].coverage != covered
}

// hasNothingDeployed tells by a cache whether an AppWrapper waits for quota or has failed, and has
// nothing deployed. The cache may be late: then somebody is woken for nothing, or soon by the change of
// the AppWrapper.
func hasNothingDeployed(cached client.Reader) func(types.NamespacedName) bool {
	return func(name types.NamespacedName) bool {
		aw := &v1beta2.AppWrapper{}
		if err := cached.Get(context.Background(), name, aw); err != nil {
			return false // it is gone, and so will be what it owns
		}
		phase := aw.Status.Phase
		return (phase == v1beta2.AppWrapperSuspended || phase == v1beta2.AppWrapperFailed) &&
			!meta.IsStatusConditionTrue(aw.Status.Conditions, string(v1beta2.ResourcesDeployed))
	}
}
