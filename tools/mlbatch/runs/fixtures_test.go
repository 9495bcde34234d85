// SPDX-License-Identifier: Apache-2.0

package runs_test

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mlbatch/mlbatch/controller/api/codeflare/v1alpha1"
)

var (
	key   = client.ObjectKey{Namespace: "blue", Name: "a"}
	start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
)

// accepted is a Run with an AppWrapper.
func accepted(name string, phase v1alpha1.RunPhase, message string) *v1alpha1.Run {
	r := runOf(name, phase, message)
	r.CreationTimestamp = metav1.NewTime(start)
	r.Status.Resolved = &v1alpha1.Resolved{Size: "sm", Workers: 2, PriorityClass: "default-priority", PerWorker: map[corev1.ResourceName]resource.Quantity{
		"cpu": resource.MustParse("1"), "memory": resource.MustParse("8Gi"),
	}}
	r.Status.AppWrapper = &v1alpha1.AppWrapperReference{Name: name, UID: types.UID("aw-" + name)}
	return r
}

// pod is a pod of Run a with one container, which has a state.
func pod(name, role string, labels map[string]string, phase corev1.PodPhase, state corev1.ContainerState) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "blue", Name: name, Labels: map[string]string{v1alpha1.RunLabel: "a", v1alpha1.RoleLabel: role}}}
	for name, value := range labels {
		p.Labels[name] = value
	}
	p.Spec.NodeName = "node-1"
	p.Spec.Containers = []corev1.Container{{Name: "main"}, {Name: "sidecar"}}
	p.Status = corev1.PodStatus{Phase: phase, ContainerStatuses: []corev1.ContainerStatus{{Name: "main", State: state}}}
	return p
}
