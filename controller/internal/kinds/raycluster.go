// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
)

// +kubebuilder:rbac:groups=ray.io,resources=rayclusters,verbs=get;list;watch;create;delete

// rayCluster is a RayCluster: a head and any number of worker groups. It never ends and
// recovers from the failures that it reports, so it has no verdict.
var rayCluster = Kind{
	GVK:             schema.GroupVersionKind{Group: "ray.io", Version: "v1", Kind: "RayCluster"},
	podSets:         rayPodSets("template.spec", rayWorkers, "spec"),
	formerly:        rayPodSets("template.spec", rayReplicas, "spec"),
	knownToKueue:    oneHostEach("spec"),
	suspended:       raySuspended("spec"),
	faults:          rayFaults("spec"),
	derived:         rayServices(""),
	restartPolicies: anyRestarts,
	volumes:         rayVolumes,

	neverSucceeds: always,
}

// rayPodSets finds the pod sets of the cluster spec in these fields, to which path leads. The
// head is always one of them: a cluster without a head fails when its path is looked up.
func rayPodSets(path string, workersOf func(group map[string]any) (int32, error), fields ...string) func(map[string]any) ([]v1beta2.AppWrapperPodSet, error) {
	at := func(field string) []string { return append(slices.Clone(fields), field) }
	return func(object map[string]any) ([]v1beta2.AppWrapperPodSet, error) {
		if autoscaling, _, _ := unstructured.NestedBool(object, at("enableInTreeAutoscaling")...); autoscaling {
			return nil, errors.New("enableInTreeAutoscaling cannot be true, because an autoscaler would add pods that have no quota: leave it out")
		}
		head := int32(1)
		podSets := []v1beta2.AppWrapperPodSet{{Path: path + ".headGroupSpec.template", Replicas: &head}}
		for i, group := range items(object, at("workerGroupSpecs")...) {
			if !present(group, "template") {
				continue
			}
			workers, err := workersOf(group)
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
}

// rayWorkers is how many pods a worker group has: KubeRay raises replicas, which are 0 if they are left out, to
// minReplicas. Else it lowers them to maxReplicas. A replica may have several hosts, and has one if it says fewer.
func rayWorkers(group map[string]any) (int32, error) {
	count, _, err := integer(group, "replicas")
	if err != nil {
		return 0, err
	}
	least, _, err := integer(group, "minReplicas")
	if err != nil {
		return 0, err
	}
	most, limited, err := integer(group, "maxReplicas")
	if err != nil {
		return 0, err
	}
	if count < least {
		count = least
	} else if limited {
		count = min(count, most)
	}
	hosts, err := replicas(group, "numOfHosts")
	if err != nil {
		return 0, err
	}
	return times(count, max(1, *hosts))
}

// rayReplicas is how many pods Kueue and AppWrapper 1.2 count in a worker group.
func rayReplicas(group map[string]any) (int32, error) {
	count, err := replicas(group, "replicas")
	if err != nil {
		return 0, err
	}
	return *count, nil
}

// oneHostEach: each worker group has as many pods as replicas, which is how Kueue counts.
func oneHostEach(fields ...string) func(map[string]any) bool {
	return func(object map[string]any) bool {
		for _, group := range items(object, append(slices.Clone(fields), "workerGroupSpecs")...) {
			count, err := rayReplicas(group)
			workers, also := rayWorkers(group)
			if err == nil && also == nil && count != workers {
				return false
			}
		}
		return true
	}
}

// rayServices: KubeRay only reports a longer name in an event, and makes no pods. It adds something to the name of what
// makes a cluster.
func rayServices(cluster string) func(map[string]any) []Derived {
	return func(map[string]any) []Derived {
		return []Derived{{Suffix: cluster + "-serve-svc", Of: "the longest name of a Service of its cluster", Rule: ServiceName}}
	}
}

// ofItsCluster is what KubeRay adds to the name of a RayJob or a RayService.
const ofItsCluster = "-xxxxx"

// rayVolumes are those that KubeRay adds to its pods.
func rayVolumes(map[string]any) []string { return []string{"shared-mem", "ray-logs", "ray-token"} }

// raySuspended finds what suspends the cluster at this path, a worker group of it, or what owns it.
func raySuspended(cluster string, owner ...string) func(map[string]any) []string {
	return func(object map[string]any) []string {
		found := suspendedBy(append(owner, cluster+".suspend", cluster+".managedBy")...)(object)
		for i, group := range items(object, strings.Split(cluster+".workerGroupSpecs", ".")...) {
			if group["suspend"] == true {
				found = append(found, fmt.Sprintf("%s.workerGroupSpecs[%d].suspend", cluster, i))
			}
		}
		return found
	}
}
