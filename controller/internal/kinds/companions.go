// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
)

// +kubebuilder:rbac:groups="",resources=services;configmaps;persistentvolumeclaims;serviceaccounts,verbs=get;list;watch;create;delete
// +kubebuilder:rbac:groups=scheduling.x-k8s.io;scheduling.sigs.k8s.io,resources=podgroups,verbs=get;list;watch;create;delete

// companions are kinds that a workload needs besides compute. They make no pods and do not
// end. Secrets are left out on purpose: a permission for those of the whole cluster is too
// much, and the chart teams grants one in each team's namespace.
var companions = []Kind{
	companion("", "v1", "Service"),
	companion("", "v1", "ConfigMap"),
	companion("", "v1", "PersistentVolumeClaim"),
	companion("", "v1", "ServiceAccount"),
	companion("scheduling.x-k8s.io", "v1alpha1", "PodGroup"),
	companion("scheduling.sigs.k8s.io", "v1alpha1", "PodGroup"),
}

// MakesNoPods tells that objects of this kind are known to run nothing.
func (k Kind) MakesNoPods() bool {
	if k.GVK.Group == "" && k.GVK.Kind == "Secret" {
		return true
	}
	return slices.ContainsFunc(companions, func(c Kind) bool { return c.GVK == k.GVK })
}

func companion(group, version, kind string) Kind {
	return Kind{
		GVK:          schema.GroupVersionKind{Group: group, Version: version, Kind: kind},
		podSets:      func(map[string]any) ([]v1beta2.AppWrapperPodSet, error) { return nil, nil },
		knownToKueue: always, // Kueue finds no pod sets either
	}
}
