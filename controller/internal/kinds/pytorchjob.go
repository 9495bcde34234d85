// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
)

// +kubebuilder:rbac:groups=kubeflow.org,resources=pytorchjobs,verbs=get;list;watch;create;delete

// pyTorchJob is the training operator's PyTorchJob.
var pyTorchJob = Kind{
	GVK:     schema.GroupVersionKind{Group: "kubeflow.org", Version: "v1", Kind: "PyTorchJob"},
	podSets: pyTorchJobPodSets,
	verdict: verdictFromConditions("Succeeded", "Failed"),
}

func pyTorchJobPodSets(object map[string]any) ([]v1beta2.AppWrapperPodSet, error) {
	var podSets []v1beta2.AppWrapperPodSet
	for _, role := range []string{"Master", "Worker"} {
		if !present(object, "spec", "pytorchReplicaSpecs", role, "template") {
			continue
		}
		count, err := replicas(object, "spec", "pytorchReplicaSpecs", role, "replicas")
		if err != nil {
			return nil, err
		}
		podSets = append(podSets, v1beta2.AppWrapperPodSet{
			Path:        "template.spec.pytorchReplicaSpecs." + role + ".template",
			Replicas:    count,
			Annotations: map[string]string{v1beta2.PodSetAnnotationTASPodIndexLabel: "training.kubeflow.org/replica-index"},
		})
	}
	return podSets, nil
}
