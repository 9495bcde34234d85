// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package e2e_test

import (
	"encoding/json"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	workload "github.com/mlbatch/mlbatch/controller/api/v1beta2"
)

// wrapped is an AppWrapper of one object in the team's default queue.
func wrapped(name string, object any, annotations map[string]string) *workload.AppWrapper {
	raw, err := json.Marshal(object)
	if err != nil {
		panic(err) // a mistake in the test: its object cannot be encoded
	}
	return &workload.AppWrapper{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Annotations: annotations,
			Labels: map[string]string{"kueue.x-k8s.io/queue-name": "default-queue"},
		},
		Spec: workload.AppWrapperSpec{
			Components: []workload.AppWrapperComponent{{Template: runtime.RawExtension{Raw: raw}}},
		},
	}
}

// job is a Job of one real pod that runs the test workload. The Job controller does not retry
// it.
func job(name, cpu string, args ...string) *batchv1.Job {
	return &batchv1.Job{
		TypeMeta:   metav1.TypeMeta{APIVersion: "batch/v1", Kind: "Job"},
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: batchv1.JobSpec{
			BackoffLimit: new(int32),
			Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
				RestartPolicy: corev1.RestartPolicyNever,
				Containers:    []corev1.Container{container("main", requests(cpu, "16Mi", ""), args...)},
			}},
		},
	}
}

func container(name string, requests corev1.ResourceList, args ...string) corev1.Container {
	return corev1.Container{
		Name: name, Image: here.Workload.Name, Args: args,
		Resources: corev1.ResourceRequirements{Requests: requests, Limits: requests},
	}
}

func requests(cpu, memory, gpus string) corev1.ResourceList {
	list := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory)}
	if gpus != "" {
		list["nvidia.com/gpu"] = resource.MustParse(gpus)
	}
	return list
}
