// SPDX-License-Identifier: Apache-2.0

package kinds

import "k8s.io/apimachinery/pkg/runtime/schema"

// +kubebuilder:rbac:groups=apps,resources=replicasets,verbs=get;list;watch;create;delete

// replicaSet is an apps/v1 ReplicaSet. It never ends, so it has no verdict.
var replicaSet = Kind{
	GVK:     schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "ReplicaSet"},
	podSets: scaledPodSets,

	neverSucceeds: always,
}
