// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// +kubebuilder:rbac:groups=ray.io,resources=rayservices,verbs=get;list;watch;create;delete

// rayService is a RayService: the pods of its cluster. It never succeeds.
var rayService = Kind{
	GVK:      schema.GroupVersionKind{Group: "ray.io", Version: "v1", Kind: "RayService"},
	podSets:  rayPodSets("template.spec.rayClusterConfig", rayWorkers, "spec", "rayClusterConfig"),
	formerly: rayPodSets("template.spec.rayClusterConfig", rayReplicas, "spec", "rayClusterConfig"),
	verdict:  rayServiceVerdict,
}

// rayServiceVerdict fails only what KubeRay has given up. A service that is not ready,
// not yet or not any more, is one that KubeRay looks after.
func rayServiceVerdict(object map[string]any) Verdict {
	switch condition(object, "Ready")["reason"] {
	case "InitializingTimeout", "ValidationFailed":
		return Failed
	}
	return Running
}
