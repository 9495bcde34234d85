// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
)

// +kubebuilder:rbac:groups=ray.io,resources=rayjobs,verbs=get;list;watch;create;delete

// rayJob is a RayJob: the pods of its cluster, and the pod that submits the job if it has a
// template. KubeRay's own submitter has none that a pod set could lead to. Kueue's copy of this
// rule finds no submitter. The pods do not show the end: they keep running or are removed, as
// the RayJob says.
var rayJob = Kind{
	GVK:      schema.GroupVersionKind{Group: "ray.io", Version: "v1", Kind: "RayJob"},
	podSets:  rayJobPodSets,
	formerly: rayPodSets("template.spec.rayClusterSpec", rayReplicas, "spec", "rayClusterSpec"),
	knownToKueue: func(object map[string]any) bool {
		return !hasSubmitter(object) && oneHostEach("spec", "rayClusterSpec")(object)
	},
	turns:           onePath("template.spec.submitterPodTemplate", Aside, hasSubmitter),
	uncounted:       attemptsThatOverlap,
	suspended:       raySuspended("spec.rayClusterSpec", "spec.suspend", "spec.managedBy"),
	faults:          rayJobFaults,
	derived:         rayServices(ofItsCluster),
	restartPolicies: anyRestarts,
	volumes:         rayVolumes,
	inQueue:         removeCluster,
	verdict:         rayJobVerdict,
	finalReason:     rayJobFinal,
}

func rayJobPodSets(object map[string]any) ([]v1beta2.AppWrapperPodSet, error) {
	if selector, _, _ := unstructured.NestedMap(object, "spec", "clusterSelector"); len(selector) > 0 {
		return nil, errors.New("clusterSelector cannot be set, because the job would use pods of a cluster for which this AppWrapper has no quota: set rayClusterSpec")
	}
	podSets, err := rayPodSets("template.spec.rayClusterSpec", rayWorkers, "spec", "rayClusterSpec")(object)
	if err != nil || !hasSubmitter(object) {
		return podSets, err
	}
	one := int32(1)
	return append(podSets, v1beta2.AppWrapperPodSet{Path: "template.spec.submitterPodTemplate", Replicas: &one}), nil
}

// removeCluster has KubeRay remove the cluster when the job has ended. Kueue refuses a RayJob without that. A
// RayJob that selects an existing cluster makes none, and a deletion strategy excludes it.
func removeCluster(object map[string]any) {
	spec, _ := object["spec"].(map[string]any)
	selector, _ := spec["clusterSelector"].(map[string]any)
	if spec != nil && len(selector) == 0 && spec["deletionStrategy"] == nil {
		spec["shutdownAfterJobFinishes"] = true
	}
}

// hasSubmitter tells whether a template of the job's author makes the pod that submits it.
func hasSubmitter(object map[string]any) bool {
	template, _, err := unstructured.NestedFieldNoCopy(object, "spec", "submitterPodTemplate")
	mode, _, _ := unstructured.NestedString(object, "spec", "submissionMode")
	return err == nil && template != nil && mode != "HTTPMode" && mode != "InteractiveMode"
}

// shortGrace is how many seconds pods may take to end if others already run in their place.
const shortGrace = 30

// attemptsThatOverlap: KubeRay tries again with a new cluster before the pods of the last one have
// ended.
func attemptsThatOverlap(object map[string]any) error {
	if limit, _, err := integer(object, "spec", "backoffLimit"); err != nil || limit <= 0 {
		return nil
	}
	head, _, _ := unstructured.NestedMap(object, "spec", "rayClusterSpec", "headGroupSpec")
	for _, group := range append(items(object, "spec", "rayClusterSpec", "workerGroupSpecs"), head) {
		if grace, _, err := integer(group, "template", "spec", "terminationGracePeriodSeconds"); err != nil || grace > shortGrace {
			return fmt.Errorf("spec.backoffLimit cannot be set if pods have more than %d terminationGracePeriodSeconds, because each attempt "+
				"gets a cluster before the pods of the last one have ended: lower one of the two", shortGrace)
		}
	}
	return nil
}

// rayJobFinal: KubeRay says ValidationFailed in the status itself, with or without a reason.
func rayJobFinal(object map[string]any) string {
	deployment, _, _ := unstructured.NestedString(object, "status", "jobDeploymentStatus")
	if deployment == validationFailed {
		return saying(deployment, text(object, "status", "message"))
	}
	return statusReason(deadlineExceeded, "PreRunningDeadlineExceeded", validationFailed)(object)
}

// validationFailed is KubeRay's word for a resource that is not valid.
const validationFailed = "ValidationFailed"

// rayJobVerdict takes a success from Ray, whatever becomes of the submitter and the cluster after
// it: what has succeeded must not run again. It takes a failure only from KubeRay: the job also
// reports failures of attempts that KubeRay repeats. A job that was stopped has failed.
func rayJobVerdict(object map[string]any) Verdict {
	deployment, _, _ := unstructured.NestedString(object, "status", "jobDeploymentStatus")
	job, _, _ := unstructured.NestedString(object, "status", "jobStatus")
	switch {
	case job == "SUCCEEDED":
		return Succeeded
	case deployment == "Complete", deployment == "Failed", deployment == validationFailed:
		return Failed
	}
	return Running
}
