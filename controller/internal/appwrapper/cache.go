// SPDX-License-Identifier: Apache-2.0

package appwrapper

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
)

// CacheOptions keep the caches to what belongs to AppWrappers, and of that to what
// is read: every other pod and Job of the cluster stays outside.
func CacheOptions() (cache.Options, error) {
	labelled, err := labels.NewRequirement(v1beta2.AppWrapperLabel, selection.Exists, nil)
	if err != nil {
		return cache.Options{}, err
	}
	return cache.Options{
		DefaultLabelSelector: labels.NewSelector().Add(*labelled),
		DefaultTransform:     slimComponent,
		ByObject: map[client.Object]cache.ByObject{
			&v1beta2.AppWrapper{}: {Label: labels.Everything(), Transform: cache.TransformStripManagedFields()},
			&corev1.Pod{}:         {Transform: slimPod},
		},
	}, nil
}

// slimComponent leaves metadata and status, where a component says how it fares.
func slimComponent(object any) (any, error) {
	if component, ok := object.(*unstructured.Unstructured); ok {
		component.SetManagedFields(nil)
		component.SetAnnotations(nil)
		delete(component.Object, "spec")
		return component, nil
	}
	return cache.TransformStripManagedFields()(object)
}

// slimPod leaves what podOf reads, and what a delete needs.
func slimPod(object any) (any, error) {
	pod, ok := object.(*corev1.Pod)
	if !ok {
		return object, nil
	}
	slim := &corev1.Pod{}
	slim.Name, slim.Namespace, slim.UID = pod.Name, pod.Namespace, pod.UID
	slim.ResourceVersion, slim.DeletionTimestamp = pod.ResourceVersion, pod.DeletionTimestamp
	slim.OwnerReferences = pod.OwnerReferences
	slim.Status.Phase = pod.Status.Phase
	slim.Labels = map[string]string{}
	for _, key := range []string{v1beta2.AppWrapperLabel, v1beta2.AppWrapperComponentLabel} {
		if value, ok := pod.Labels[key]; ok {
			slim.Labels[key] = value
		}
	}
	for _, container := range pod.Status.ContainerStatuses {
		if container.State.Terminated != nil {
			ended := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: container.State.Terminated.ExitCode}}
			slim.Status.ContainerStatuses = append(slim.Status.ContainerStatuses, corev1.ContainerStatus{State: ended})
		}
	}
	return slim, nil
}
