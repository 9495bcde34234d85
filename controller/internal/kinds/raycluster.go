// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
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
	knownToKueue: func(object map[string]any) bool { return oneHostEach(object, "spec") },
}

// rayPodSets are those of the cluster spec at these fields, to which path leads. The
// head is always one of them: a cluster without it must fail where its path is tried.
func rayPodSets(object map[string]any, path string, fields ...string) ([]v1beta2.AppWrapperPodSet, error) {
	if autoscaling, _, _ := unstructured.NestedBool(object, append(fields, "enableInTreeAutoscaling")...); autoscaling {
		return nil, errors.New("enableInTreeAutoscaling cannot be true, because an autoscaler would add pods that have no quota: leave it out")
	}
	head := int32(1)
	podSets := []v1beta2.AppWrapperPodSet{{Path: path + ".headGroupSpec.template", Replicas: &head}}
	for i, group := range items(object, append(fields, "workerGroupSpecs")...) {
		if !present(group, "template") {
			continue
		}
		workers, err := rayWorkers(group)
		if err != nil {
			return nil, fmt.Errorf("workerGroupSpecs[%d]: %w", i, err)
		}
		podSets = append(podSets, v1beta2.AppWrapperPodSet{
			Path:     fmt.Sprintf("%s.workerGroupSpecs[%d].template", path, i),
			Replicas: &workers,
		})
	}
	return podSets, nil
}

// rayWorkers is how many pods a worker group has: a replica may be several hosts. KubeRay
// raises too few replicas to their minimum, for which there would be no quota.
func rayWorkers(group map[string]any) (int32, error) {
	count, err := replicas(group, "replicas")
	if err != nil {
		return 0, err
	}
	least, _, err := integer(group, "minReplicas")
	if err != nil {
		return 0, err
	}
	if least > *count {
		return 0, fmt.Errorf("minReplicas is %d and replicas %d: KubeRay would make more pods than have quota", least, *count)
	}
	hosts, err := replicas(group, "numOfHosts")
	if err != nil {
		return 0, err
	}
	return times(*count, *hosts)
}

// oneHostEach: a replica of a worker group is one pod. Kueue counts so in any case.
func oneHostEach(object map[string]any, fields ...string) bool {
	for _, group := range items(object, append(fields, "workerGroupSpecs")...) {
		if hosts, err := replicas(group, "numOfHosts"); err == nil && *hosts != 1 {
			return false
		}
	}
	return true
}
