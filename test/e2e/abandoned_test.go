// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package e2e_test

import (
	"context"
	"fmt"
	"slices"
	"time"

	rayv1 "github.com/ray-project/kuberay/ray-operator/apis/ray/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/e2e-framework/klient/k8s/resources"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// rayWork is Ray work that no AppWrapper wraps, and that KubeRay is made to give up.
type rayWork struct {
	kind, name string
	pods       int
	event      string // what KubeRay announces then
}

var (
	abandonedJob     = rayWork{"rayjob", "abandoned-job", 1, "InvalidRayJobSpec"}
	abandonedCluster = rayWork{"raycluster", "abandoned-cluster", 3, "InvalidRayClusterSpec"}
	disownedCluster  = rayWork{"raycluster", "disowned-cluster", 3, "InvalidRayClusterSpec"}
)

// rayIsReady returns "" once KubeRay knows that all pods of Ray work run.
func (s *story) rayIsReady(ctx context.Context, w rayWork) (string, error) {
	cluster, err := s.clusterOf(ctx, w)
	if err != nil || meta.IsStatusConditionTrue(cluster.Status.Conditions, string(rayv1.RayClusterProvisioned)) {
		return "", err
	}
	return fmt.Sprintf("its conditions are %+v", cluster.Status.Conditions), nil
}

// clusterOf is the RayCluster that the work is, or that KubeRay has made for it.
func (s *story) clusterOf(ctx context.Context, w rayWork) (rayv1.RayCluster, error) {
	clusters := &rayv1.RayClusterList{}
	if err := s.admin.List(ctx, clusters); err != nil {
		return rayv1.RayCluster{}, err
	}
	for _, c := range clusters.Items {
		if owner := metav1.GetControllerOf(&c); c.Name == w.name || owner != nil && owner.Name == w.name {
			return c, nil
		}
	}
	return rayv1.RayCluster{}, fmt.Errorf("%s has no RayCluster", w.name)
}

// rayOutlived returns "" if all pods of the work run without quota, some seconds after KubeRay has
// given it up.
func (s *story) rayOutlived(ctx context.Context, w rayWork) (string, error) {
	events := &corev1.EventList{}
	if err := s.admin.List(ctx, events, resources.WithFieldSelector("reason="+w.event)); err != nil {
		return "", err
	}
	if !slices.ContainsFunc(events.Items, func(e corev1.Event) bool { return time.Since(e.CreationTimestamp.Time) > 3*time.Second }) {
		return "KubeRay did not give it up 3 seconds ago", nil
	}
	cluster, err := s.clusterOf(ctx, w)
	if err != nil {
		return "", err
	}
	pods, workloads := &corev1.PodList{}, &kueue.WorkloadList{}
	if err := s.admin.List(ctx, pods, resources.WithLabelSelector("ray.io/cluster="+cluster.Name)); err != nil {
		return "", err
	}
	running := slices.DeleteFunc(pods.Items, func(p corev1.Pod) bool { return p.DeletionTimestamp != nil || p.Status.Phase != corev1.PodRunning })
	if len(running) != w.pods {
		return fmt.Sprintf("%d of %d pods run", len(running), w.pods), nil
	}
	if err := s.admin.List(ctx, workloads); err != nil {
		return "", err
	}
	for _, item := range workloads.Items {
		if quota := podsWithQuota(&item); quota > 0 && slices.ContainsFunc(item.OwnerReferences, func(o metav1.OwnerReference) bool { return o.Name == w.name }) {
			return fmt.Sprintf("Kueue holds quota for %d of its pods", quota), nil
		}
	}
	return "", nil
}

// podsWithQuota is how many pods have quota through an object. Only Workloads hold quota.
func podsWithQuota(object runtime.Object) (pods int32) {
	w, is := object.(*kueue.Workload)
	if !is || w.Status.Admission == nil || !meta.IsStatusConditionTrue(w.Status.Conditions, kueue.WorkloadQuotaReserved) ||
		meta.IsStatusConditionTrue(w.Status.Conditions, kueue.WorkloadFinished) {
		return 0
	}
	for _, assignment := range w.Status.Admission.PodSetAssignments {
		if assignment.Count != nil {
			pods += *assignment.Count
		}
	}
	return pods
}
