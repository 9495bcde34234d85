// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/record"

	"github.com/mlbatch/mlbatch/test/patience"
)

// living returns a worker whose container runs and is ready, and its API server.
func living(t *testing.T) (*worker, *fake.Clientset) {
	t.Helper()
	pod := one(func(*corev1.Pod, *corev1.Container) {})
	api := fake.NewClientset(pod.DeepCopy())
	w := newWorker(&node{name: "node", dir: t.TempDir(), api: api}, pod, record.NewFakeRecorder(10))
	w.state = state{
		ip: "10.200.0.10", hostIP: "10.200.0.1", ready: true, began: metav1.Now(),
		now: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Now()}},
	}
	return w, api
}

// failOnce makes the first request of a kind fail.
func failOnce(api *fake.Clientset, verb, resource string) {
	var failed atomic.Bool
	api.PrependReactor(verb, resource, func(clienttesting.Action) (bool, runtime.Object, error) {
		return !failed.Swap(true), nil, errors.New("the API server is away")
	})
}

func saved(t *testing.T, api *fake.Clientset) *corev1.Pod {
	t.Helper()
	pod, err := api.CoreV1().Pods("system").Get(t.Context(), "operator-1", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return pod
}

func holding(pod *corev1.Pod, kind corev1.PodConditionType) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == kind {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

func TestAFailedStatusUpdateIsRetried(t *testing.T) {
	w, api := living(t)
	failOnce(api, "patch", "pods")
	w.publish(t.Context())
	if again := w.retrySave(); again == nil {
		t.Fatal("it is not tried again")
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go w.rest(ctx, time.Minute)
	untilTriedAgain(t, func() bool { return holding(saved(t, api), corev1.PodReady) })
}

// untilTriedAgain waits until a condition holds.
func untilTriedAgain(t *testing.T, holds func() bool) {
	t.Helper()
	look, tooLate := time.NewTicker(10*time.Millisecond), time.After(patience.For(patience.Short))
	defer look.Stop()
	for !holds() {
		select {
		case <-look.C:
		case <-tooLate:
			t.Fatal("it was not tried again")
		}
	}
}

func TestAFailedWaitingReportIsRetried(t *testing.T) {
	w, api := living(t)
	failOnce(api, "patch", "pods")
	for range 2 {
		w.reportWaiting(t.Context(), errors.New("there is no program"))
	}
	if s := saved(t, api).Status.ContainerStatuses; len(s) != 1 || s[0].State.Waiting == nil {
		t.Errorf("the pod's containers are %+v", s)
	}
}

func TestChangesByOthersAreRevertedOrKept(t *testing.T) {
	w, api := living(t)
	w.publish(t.Context())
	pod := saved(t, api)
	for i, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady { // the node controller sets this for an unreachable node
			pod.Status.Conditions[i].Status = corev1.ConditionFalse
		}
	}
	pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue})
	if _, err := api.CoreV1().Pods("system").UpdateStatus(t.Context(), pod, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	w.hear(t.Context(), saved(t, api))
	if got := saved(t, api); !holding(got, corev1.PodReady) || !holding(got, corev1.DisruptionTarget) {
		t.Errorf("its conditions are %+v", got.Status.Conditions)
	}
}

func TestConcurrentChangesByOthersAreKept(t *testing.T) {
	w, api := living(t)
	w.publish(t.Context())
	pod := saved(t, api)
	pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue})
	if _, err := api.CoreV1().Pods("system").UpdateStatus(t.Context(), pod, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	w.state.ready = false
	w.publish(t.Context())
	if got := saved(t, api); holding(got, corev1.PodReady) || !holding(got, corev1.DisruptionTarget) {
		t.Errorf("its conditions are %+v", got.Status.Conditions)
	}
}

func TestAnUnchangedStatusIsNotSaved(t *testing.T) {
	w, api := living(t)
	w.publish(t.Context())
	w.hear(t.Context(), saved(t, api))
	w.publish(t.Context())
	var patches []string
	for _, a := range api.Actions() {
		if patch, is := a.(clienttesting.PatchAction); is {
			patches = append(patches, string(patch.GetPatch()))
		}
	}
	if len(patches) != 1 {
		t.Errorf("it was saved by %q", patches)
	}
}

func TestDeletingAPodIsRetried(t *testing.T) {
	w, api := living(t)
	failOnce(api, "delete", "pods")
	if err := w.remove(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := api.CoreV1().Pods("system").Get(t.Context(), "operator-1", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("it is there: %v", err)
	}
}

func TestFillingAVolumeIsRetried(t *testing.T) {
	w, api := living(t)
	w.pod.Spec.Volumes = []corev1.Volume{{Name: "token", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
		Sources: []corev1.VolumeProjection{{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token"}}},
	}}}}
	api.PrependReactor("create", "serviceaccounts", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, &authenticationv1.TokenRequest{Status: authenticationv1.TokenRequestStatus{Token: "secret"}}, nil
	})
	failOnce(api, "create", "serviceaccounts")
	changes := make(chan struct{}, 1)
	changes <- struct{}{}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go w.refill(ctx, changes)
	untilTriedAgain(t, func() bool {
		token, err := os.ReadFile(filepath.Join(w.volume("token"), "token"))
		return err == nil && string(token) == "secret"
	})
	w.end()
	w.filling.Lock() // otherwise it writes to a folder that is being removed
}

func TestRestartsAreCountedAcrossProcessnodes(t *testing.T) {
	for name, c := range map[string]struct {
		before corev1.ContainerStatus
		want   int32
	}{
		"a container that ran is started anew":      {corev1.ContainerStatus{State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}, 1},
		"a container that never ran has no restart": {corev1.ContainerStatus{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{}}}, 0},
		"a restart that was counted is counted once": {corev1.ContainerStatus{
			State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{}}, RestartCount: 2,
		}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			pod := one(func(p *corev1.Pod, _ *corev1.Container) {
				p.Status.ContainerStatuses = []corev1.ContainerStatus{c.before}
			})
			if got := newWorker(&node{}, pod, nil).state.restarts; got != c.want {
				t.Errorf("it counts %d, want %d", got, c.want)
			}
		})
	}
}

func TestFoldersOfDeletedPodsAreRemoved(t *testing.T) {
	w, _ := living(t)
	if err := w.node.forget(t.Context()); err != nil {
		t.Errorf("a new node fails: %v", err)
	}
	for _, uid := range []string{"u-1", "u-0"} {
		if err := os.MkdirAll(filepath.Join(w.node.folders(), uid, "volumes"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.node.forget(t.Context()); err != nil {
		t.Fatal(err)
	}
	left, err := filepath.Glob(filepath.Join(w.node.folders(), "*"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{w.folder()}, left); diff != "" {
		t.Error(diff)
	}
}
