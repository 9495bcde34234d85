// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
)

// +kubebuilder:rbac:groups=ray.io,resources=rayclusters,verbs=get;list;watch;create;delete

// rayCluster is a RayCluster: a head and any number of worker groups. It never ends,
// and it recovers from the failures that it reports, so it has no verdict.
var rayCluster = Kind{
	GVK: schema.GroupVersionKind{Group: "ray.io", Version: "v1", Kind: "RayCluster"},
	podSets: func(object map[string]any) ([]v1beta2.AppWrapperPodSet, error) {
		return rayPodSets(object, "template.spec", "spec")
	},
}

// rayPodSets are those of the cluster spec at these fields, to which path leads. The
// head is always one of them: a cluster without it must fail where its path is tried.
func rayPodSets(object map[string]any, path string, fields ...string) ([]v1beta2.AppWrapperPodSet, error) {
	head := int32(1)
	podSets := []v1beta2.AppWrapperPodSet{{Path: path + ".headGroupSpec.template", Replicas: &head}}
	for i, group := range items(object, append(fields, "workerGroupSpecs")...) {
		if !present(group, "template") {
			continue
		}
		workers, err := replicas(group, "replicas")
		if err != nil {
			return nil, fmt.Errorf("workerGroupSpecs[%d]: %w", i, err)
		}
		podSets = append(podSets, v1beta2.AppWrapperPodSet{
			Path:     fmt.Sprintf("%s.workerGroupSpecs[%d].template", path, i),
			Replicas: workers,
		})
	}
	return podSets, nil
}
