// SPDX-License-Identifier: Apache-2.0

package kinds

import "k8s.io/apimachinery/pkg/runtime/schema"

// +kubebuilder:rbac:groups=apps,resources=statefulsets,verbs=get;list;watch;create;delete

// statefulSet is an apps/v1 StatefulSet. It never ends, so it has no verdict.
var statefulSet = Kind{
	GVK:     schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "StatefulSet"},
	podSets: scaledPodSets,

	knownToKueue: always,
}
