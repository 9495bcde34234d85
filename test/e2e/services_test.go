// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package e2e_test

import (
	"context"
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/e2e-framework/pkg/envconf"
	"sigs.k8s.io/e2e-framework/pkg/features"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	workload "github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/test/e2e/needs"
)

// services are kinds that run until they are deleted, with two simulated pods each.
func services() map[string]client.Object {
	two := int32(2)
	labels := map[string]string{"app": "service"}
	object := metav1.ObjectMeta{Name: "service"}
	selector := &metav1.LabelSelector{MatchLabels: labels}
	template := corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: labels},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{container("main", requests("1", "1Gi", "1"), "sleep", "1h")}},
	}
	return map[string]client.Object{
		"Deployment": &appsv1.Deployment{
			TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"}, ObjectMeta: object,
			Spec: appsv1.DeploymentSpec{Replicas: &two, Selector: selector, Template: template},
		},
		"ReplicaSet": &appsv1.ReplicaSet{
			TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "ReplicaSet"}, ObjectMeta: object,
			Spec: appsv1.ReplicaSetSpec{Replicas: &two, Selector: selector, Template: template},
		},
		"StatefulSet": &appsv1.StatefulSet{
			TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "StatefulSet"}, ObjectMeta: object,
			Spec: appsv1.StatefulSetSpec{Replicas: &two, Selector: selector, Template: template, ServiceName: "service"},
		},
	}
}

// A service survives the loss of pods, because its own controller replaces them. It never
// succeeds, and releases its quota when it is evicted.
func TestAServiceOutlivesItsPods(t *testing.T) {
	for kind, object := range services() {
		testenv.Test(t, features.New(kind).Assess("its pods are replaced", func(ctx context.Context, t *testing.T, cfg *envconf.Config) context.Context {
			s := tell(t, cfg, "e2e-serving", "sven", needs.SimulatedNodes)
			aw := wrapped("service", object, nil)
			s.create(ctx, aw)
			s.untilServing(ctx, aw)

			// A ReplicaSet keeps its failed pods: in the end there are as many of them as
			// running ones.
			s.untilReplaced(ctx, aw, func(pod *corev1.Pod) error { return s.user.Delete(ctx, pod) })
			s.untilReplaced(ctx, aw, func(pod *corev1.Pod) error { return s.fail(ctx, pod) })
			s.untilReplaced(ctx, aw, func(pod *corev1.Pod) error { return s.fail(ctx, pod) })
			if aw.Status.Retries != 0 {
				t.Errorf("replacing pods counted as %d retries", aw.Status.Retries)
			}

			s.stop(ctx, kueue.HoldAndDrain)
			s.untilPhase(ctx, aw, workload.AppWrapperSuspended)
			s.nothingRuns(ctx, object)
			s.untilReserved(ctx, gpu, "0")
			s.stop(ctx, kueue.None)
			s.untilServing(ctx, aw)

			s.remove(ctx, aw)
			s.until(ctx, "the AppWrapper is gone", func(ctx context.Context) (string, error) { return s.stillThere(ctx, aw) })
			s.nothingRuns(ctx, object)
			s.untilReserved(ctx, gpu, "0")
			return ctx
		}).Feature())
	}
}

// untilServing waits until both pods run and the AppWrapper reports them as ready.
func (s *story) untilServing(ctx context.Context, aw *workload.AppWrapper) {
	s.t.Helper()
	s.untilPhase(ctx, aw, workload.AppWrapperRunning)
	s.untilRunning(ctx, aw.Name, 2)
	s.untilReserved(ctx, gpu, "2")
	s.until(ctx, "the AppWrapper is well", func(ctx context.Context) (string, error) {
		err := s.admin.Get(ctx, aw.Name, s.namespace, aw)
		ready := meta.IsStatusConditionTrue(aw.Status.Conditions, string(workload.PodsReady))
		unhealthy := meta.IsStatusConditionTrue(aw.Status.Conditions, string(workload.Unhealthy))
		if aw.Status.Phase != workload.AppWrapperRunning {
			return "", broken("it is " + string(aw.Status.Phase))
		}
		if !ready || unhealthy {
			return fmt.Sprintf("its conditions are %+v", aw.Status.Conditions), err
		}
		return "", err
	})
}

// untilReplaced ends one of the pods and waits for its replacement.
func (s *story) untilReplaced(ctx context.Context, aw *workload.AppWrapper, end func(*corev1.Pod) error) {
	s.t.Helper()
	pods, err := s.running(ctx, aw.Name)
	if err != nil || len(pods) != 2 {
		s.t.Fatalf("%d pods run (%v)", len(pods), err)
	}
	if err := end(&pods[0]); err != nil {
		s.t.Fatalf("cannot stop pod %s: %v", pods[0].Name, err)
	}
	s.until(ctx, "pod "+pods[0].Name+" is replaced", func(ctx context.Context) (string, error) {
		now, err := s.running(ctx, aw.Name)
		for _, p := range now {
			if p.UID == pods[0].UID {
				return "it runs", err
			}
		}
		if len(now) != 2 {
			return fmt.Sprintf("%d pods run", len(now)), err
		}
		return "", err
	})
	s.untilServing(ctx, aw)
}

// fail sets the status of a simulated pod to Failed, as its kubelet would.
func (s *story) fail(ctx context.Context, pod *corev1.Pod) error {
	patch := client.RawPatch(types.StrategicMergePatchType, []byte(`{"status": {"phase": "Failed"}}`))
	return s.admin.GetControllerRuntimeClient().Status().Patch(ctx, pod, patch)
}

// nothingRuns fails if a pod exists, or an object that would create one.
func (s *story) nothingRuns(ctx context.Context, object client.Object) {
	s.t.Helper()
	pods := &corev1.PodList{}
	if err := s.admin.List(ctx, pods); err != nil || len(pods.Items) > 0 {
		s.t.Errorf("there are %d pods (%v)", len(pods.Items), err)
	}
	now := object.DeepCopyObject().(client.Object)
	if err := s.admin.Get(ctx, object.GetName(), s.namespace, now); client.IgnoreNotFound(err) != nil || err == nil {
		s.t.Errorf("the %s is still there (%v)", object.GetObjectKind().GroupVersionKind().Kind, err)
	}
}
