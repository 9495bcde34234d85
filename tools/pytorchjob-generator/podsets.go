// SPDX-License-Identifier: Apache-2.0

package generator

import (
	"encoding/json"
	"fmt"

	kubeflow "github.com/kubeflow/training-operator/pkg/apis/kubeflow.org/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/resource"
	"k8s.io/utils/ptr"
	jobset "sigs.k8s.io/jobset/api/jobset/v1alpha2"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/tools/mlbatch/queuefit"
)

// PodSets are the pods of a rendered job and their resource requests.
func PodSets(aw *v1beta2.AppWrapper) ([]queuefit.PodSet, error) {
	var all []queuefit.PodSet
	for _, component := range aw.Spec.Components {
		var o struct {
			Kind string `json:"kind"`
			Spec struct {
				kubeflow.PyTorchJobSpec `json:",inline"`
				ReplicatedJobs          []jobset.ReplicatedJob `json:"replicatedJobs"`
			} `json:"spec"`
		}
		if err := json.Unmarshal(component.Template.Raw, &o); err != nil {
			return nil, fmt.Errorf("cannot read the pods of the rendered job: %w", err)
		}
		for _, kind := range []kubeflow.ReplicaType{kubeflow.PyTorchJobReplicaTypeMaster, kubeflow.PyTorchJobReplicaTypeWorker} {
			if replica := o.Spec.PyTorchReplicaSpecs[kind]; replica != nil {
				all = append(all, podSet(ptr.Deref(replica.Replicas, 1), replica.Template))
			}
		}
		for _, job := range o.Spec.ReplicatedJobs {
			all = append(all, podSet(job.Replicas*ptr.Deref(job.Template.Spec.Parallelism, 1), job.Template.Spec.Template))
		}
	}
	return all, nil
}

func podSet(count int32, template corev1.PodTemplateSpec) queuefit.PodSet {
	requests := resource.PodRequests(&corev1.Pod{Spec: template.Spec}, resource.PodResourcesOptions{})
	return queuefit.PodSet{Count: int64(count), Requests: requests, PriorityClass: template.Spec.PriorityClassName}
}
