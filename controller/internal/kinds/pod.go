// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
)

// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list;watch;create;delete

// pod is a bare Pod: the template is the pod, and its phase is the verdict.
var pod = Kind{
	GVK: schema.GroupVersionKind{Version: "v1", Kind: "Pod"},
	podSets: func(map[string]any) ([]v1beta2.AppWrapperPodSet, error) {
		one := int32(1)
		return []v1beta2.AppWrapperPodSet{{Path: "template", Replicas: &one}}, nil
	},
	knownToKueue: always,
	verdict:      podVerdict,
	finalReason:  statusReason(deadlineExceeded),

	neverSucceeds: func(object map[string]any) bool {
		policy := text(object, "spec", "restartPolicy")
		return policy == "" || policy == "Always" // the API server's default
	},
}

func podVerdict(object map[string]any) Verdict {
	phase, _, _ := unstructured.NestedString(object, "status", "phase")
	switch phase {
	case "Succeeded":
		return Succeeded
	case "Failed":
		return Failed
	}
	if evicted(object) {
		return Failed
	}
	return Running
}

// evicted: the cluster, not a person, deletes the pod, and nothing replaces it. The condition
// alone says only that the cluster tried.
func evicted(object map[string]any) bool {
	_, terminating, _ := unstructured.NestedString(object, "metadata", "deletionTimestamp")
	return terminating && condition(object, "DisruptionTarget")["status"] == "True"
}
