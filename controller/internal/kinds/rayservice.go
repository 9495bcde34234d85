// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// +kubebuilder:rbac:groups=ray.io,resources=rayservices,verbs=get;list;watch;create;delete

// rayService is a RayService: the pods of its cluster. It never succeeds.
var rayService = Kind{
	GVK:             schema.GroupVersionKind{Group: "ray.io", Version: "v1", Kind: "RayService"},
	podSets:         rayPodSets("template.spec.rayClusterConfig", rayWorkers, "spec", "rayClusterConfig"),
	formerly:        rayPodSets("template.spec.rayClusterConfig", rayReplicas, "spec", "rayClusterConfig"),
	verdict:         rayServiceVerdict,
	finalReason:     finalReasons([]string{"Ready"}, validationFailed),
	suspended:       raySuspended("spec.rayClusterConfig", "spec.managedBy"),
	faults:          rayFaults("spec.rayClusterConfig"),
	derived:         rayServices(ofItsCluster),
	restartPolicies: anyRestarts,
	volumes:         rayVolumes,

	neverSucceeds: always,
}

// rayServiceVerdict fails only services that KubeRay has given up. KubeRay recovers a service
// that is not ready yet, or no longer.
func rayServiceVerdict(object map[string]any) Verdict {
	switch condition(object, "Ready")["reason"] {
	case "InitializingTimeout", validationFailed:
		return Failed
	}
	return Running
}
