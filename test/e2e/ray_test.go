// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package e2e_test

import (
	"context"
	"fmt"
	"testing"

	rayv1 "github.com/ray-project/kuberay/ray-operator/apis/ray/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/e2e-framework/pkg/envconf"
	"sigs.k8s.io/e2e-framework/pkg/features"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/mlbatch/mlbatch/test/e2e/needs"
)

// A RayCluster that a user creates without an AppWrapper is queued, too.
func TestARayClusterIsAdmitted(t *testing.T) {
	testenv.Test(t, features.New("ray").Assess("it becomes ready", func(ctx context.Context, t *testing.T, cfg *envconf.Config) context.Context {
		s := tell(t, cfg, "e2e-ray", "rita", needs.SimulatedNodes, needs.RayClusters)
		cluster := rayCluster("cluster", 2)
		s.create(ctx, cluster)
		s.untilWorkload(ctx, cluster, kueue.WorkloadAdmitted, "True", "Admitted")
		s.untilReserved(ctx, "nvidia.com/gpu", "2")
		s.until(ctx, "the RayCluster is ready", func(ctx context.Context) (string, error) {
			err := s.admin.Get(ctx, cluster.Name, s.namespace, cluster)
			provisioned := meta.IsStatusConditionTrue(cluster.Status.Conditions, string(rayv1.RayClusterProvisioned))
			if provisioned && cluster.Status.ReadyWorkerReplicas == 2 { // KubeRay may count the second worker later
				return "", err
			}
			return fmt.Sprintf("%d workers are ready, and its conditions are %+v", cluster.Status.ReadyWorkerReplicas, cluster.Status.Conditions), err
		})
		return ctx
	}).Feature())
}

// rayCluster has a head and workers with a GPU each. All pods are simulated.
func rayCluster(name string, workers int32) *rayv1.RayCluster {
	template := func(name, gpus string) corev1.PodTemplateSpec {
		return corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			Containers: []corev1.Container{container(name, requests("1", "1Gi", gpus), "sleep", "1h")},
		}}
	}
	return &rayv1.RayCluster{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"kueue.x-k8s.io/queue-name": "default-queue"}},
		Spec: rayv1.RayClusterSpec{
			HeadGroupSpec: rayv1.HeadGroupSpec{RayStartParams: map[string]string{}, Template: template("head", "")},
			WorkerGroupSpecs: []rayv1.WorkerGroupSpec{{
				GroupName: "workers", Replicas: &workers, MinReplicas: &workers, MaxReplicas: &workers,
				RayStartParams: map[string]string{}, Template: template("worker", "1"),
			}},
		},
	}
}
