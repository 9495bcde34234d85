// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package e2e_test

import (
	"context"
	"fmt"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// stays is a finalizer that keeps a deleted simulated pod, as if its program took its time to
// stop, until the story removes it.
const stays = "e2e.mlbatch.dev/stays"

// Patches that let a simulated pod succeed, and that give it a finalizer and take it away.
const (
	succeeds = `{"metadata": {"annotations": {"localcluster.mlbatch.dev/run-for": "0s"}}}`
	hold     = `{"metadata": {"finalizers": ["` + stays + `"]}}`
	letGo    = `{"metadata": {"$deleteFromPrimitiveList/finalizers": ["` + stays + `"]}}`
)

// gpuJob is a Job of one simulated pod that runs until the story ends it.
func gpuJob(name, gpus string) *batchv1.Job {
	return &batchv1.Job{
		TypeMeta:   metav1.TypeMeta{APIVersion: "batch/v1", Kind: "Job"},
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: batchv1.JobSpec{
			BackoffLimit: new(int32),
			Template: corev1.PodTemplateSpec{
				Spec: corev1.PodSpec{
					RestartPolicy: corev1.RestartPolicyNever,
					Containers:    []corev1.Container{container("main", requests("1", "1Gi", gpus), "sleep", "1h")},
				},
			},
		},
	}
}

// gpuJobs is a Job of several such pods, on simulated nodes of any flavor.
func gpuJobs(name string, pods int32, gpus string) *batchv1.Job {
	job := gpuJob(name, gpus)
	job.Spec.Parallelism, job.Spec.Completions = &pods, &pods
	job.Spec.Template.Spec.Tolerations = []corev1.Toleration{{Key: string(gpu), Operator: corev1.TolerationOpExists}}
	return job
}

// onlyPod waits until an AppWrapper's only pod runs, and returns it.
func (s *story) onlyPod(ctx context.Context, appWrapper string) (only *corev1.Pod) {
	s.t.Helper()
	s.until(ctx, "the only pod of "+appWrapper+" runs", func(ctx context.Context) (string, error) {
		pods, err := s.pods(ctx, appWrapper)
		if err != nil || len(pods) != 1 || pods[0].Status.Phase != corev1.PodRunning {
			return fmt.Sprintf("it has %d pods", len(pods)), err
		}
		only = &pods[0]
		return "", nil
	})
	return only
}

// change patches a pod, if it still exists.
func (s *story) change(ctx context.Context, pod *corev1.Pod, patch string) {
	s.t.Helper()
	api := s.admin.GetControllerRuntimeClient()
	if err := api.Patch(ctx, pod, client.RawPatch(types.StrategicMergePatchType, []byte(patch))); client.IgnoreNotFound(err) != nil {
		s.t.Errorf("cannot change pod %s: %v", pod.Name, err)
	}
}

// letAllGo removes the finalizer of all pods at the end of a story.
func (s *story) letAllGo() {
	pods := &corev1.PodList{}
	if err := s.admin.List(context.Background(), pods); err != nil {
		s.t.Error(err)
	}
	for i, p := range pods.Items {
		if slices.Contains(p.Finalizers, stays) {
			s.change(context.Background(), &pods.Items[i], letGo)
		}
	}
}
