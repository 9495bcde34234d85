// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
)

// +kubebuilder:rbac:groups=apps,resources=deployments,verbs=get;list;watch;create;delete

// deployment is an apps/v1 Deployment. It never ends, so it has no verdict.
var deployment = Kind{
	GVK:     schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"},
	podSets: scaledPodSets,
	inQueue: withoutSurge,

	knownToKueue:  always,
	neverSucceeds: always,
	suspended:     suspendedBy("spec.paused"),
}

// scaledPodSets finds the pod set of a kind with spec.replicas and spec.template.
func scaledPodSets(object map[string]any) ([]v1beta2.AppWrapperPodSet, error) {
	count, err := replicas(object, "spec", "replicas")
	if err != nil {
		return nil, err
	}
	return []v1beta2.AppWrapperPodSet{{Path: "template.spec.template", Replicas: count}}, nil
}
