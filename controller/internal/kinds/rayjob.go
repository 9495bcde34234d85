// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// +kubebuilder:rbac:groups=ray.io,resources=rayjobs,verbs=get;list;watch;create;delete

// rayJob is a RayJob: the pods of its cluster. The pod that submits the job does not count,
// as in Kueue's copy of this rule. The pods do not show the end: they keep running or are
// removed, as the RayJob says.
var rayJob = Kind{
	GVK:          schema.GroupVersionKind{Group: "ray.io", Version: "v1", Kind: "RayJob"},
	podSets:      rayPodSets("template.spec.rayClusterSpec", rayWorkers, "spec", "rayClusterSpec"),
	formerly:     rayPodSets("template.spec.rayClusterSpec", rayReplicas, "spec", "rayClusterSpec"),
	knownToKueue: oneHostEach("spec", "rayClusterSpec"),
	verdict:      rayJobVerdict,
}

// rayJobVerdict takes a failure only from KubeRay: the job also reports failures of attempts
// that KubeRay repeats. A job that was stopped has failed.
func rayJobVerdict(object map[string]any) Verdict {
	deployment, _, _ := unstructured.NestedString(object, "status", "jobDeploymentStatus")
	job, _, _ := unstructured.NestedString(object, "status", "jobStatus")
	switch {
	case deployment == "Complete" && job == "SUCCEEDED":
		return Succeeded
	case deployment == "Complete", deployment == "Failed", deployment == "ValidationFailed":
		return Failed
	}
	return Running
}
