// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package chaos_test

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workload "github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/test/patience"
)

func await(t testing.TB, what string, condition func(context.Context) error) {
	t.Helper()
	patience.Await(t, what, condition)
}

// aside runs a part of a test in a goroutine of its own. A fatal failure ends only that
// goroutine.
type aside struct{ testing.TB }

func (a aside) Fatal(args ...any) {
	a.Error(args...)
	runtime.Goexit()
}

func (a aside) Fatalf(format string, args ...any) {
	a.Errorf(format, args...)
	runtime.Goexit()
}

// life is what Kueue and the user do to one AppWrapper, and how it must end.
type life struct {
	name string
	// job is the spec of the Job, without the pod template.
	job map[string]any
	// runFor is how long each pod runs; "" means until it is deleted.
	runFor string
	// evictions is how many times Kueue evicts it while it runs, and admits it again.
	evictions int
	// never means that it gets no quota.
	never bool
	// deleted means that the user deletes it while it runs.
	deleted bool

	ends    workload.AppWrapperPhase // "" means that it is gone
	retries int32
}

// sorts are the lives to test.
var sorts = []life{
	{name: "succeeds", runFor: "1s", ends: workload.AppWrapperSucceeded},
	{name: "out-of-time", job: map[string]any{"activeDeadlineSeconds": 1}, ends: workload.AppWrapperFailed},
	{name: "runs", ends: workload.AppWrapperRunning},
	{name: "is-evicted", evictions: 2, ends: workload.AppWrapperRunning},
	{name: "waits", never: true, ends: workload.AppWrapperSuspended},
	{name: "is-deleted", deleted: true},
	{name: "is-evicted-and-deleted", evictions: 1, deleted: true},
}

// creations returns how many times the Job must be created.
func (l life) creations() int {
	if l.never {
		return 0
	}
	return 1 + l.evictions + int(l.retries)
}

func makeNamespace(name string) error {
	return admin.Create(context.Background(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
}

// live runs lives of all sorts at the same time, each as often as rounds says.
func live(t *testing.T, namespace string, meanwhile func()) {
	t.Helper()
	if err := makeNamespace(namespace); err != nil {
		t.Fatal(err)
	}
	judge := watchQuota(t, namespace)
	var all sync.WaitGroup
	for round := range *rounds {
		for _, l := range sorts {
			l.name = fmt.Sprintf("%s-%d", l.name, round)
			all.Go(func() { l.happen(aside{t}, namespace) })
		}
	}
	meanwhile()
	all.Wait()
	if !t.Failed() {
		clear(t, namespace)
	}
	judge.decide(t)
}

// clear deletes everything that is left.
func clear(t testing.TB, namespace string) {
	t.Helper()
	if err := admin.DeleteAllOf(t.Context(), &workload.AppWrapper{}, client.InNamespace(namespace)); err != nil {
		t.Fatal(err)
	}
	await(t, "all AppWrappers are gone", func(ctx context.Context) error {
		left := &workload.AppWrapperList{}
		if err := admin.List(ctx, left, client.InNamespace(namespace)); err != nil || len(left.Items) > 0 {
			return fmt.Errorf("%d are left (%w)", len(left.Items), err)
		}
		return nil
	})
}

func (l life) happen(t testing.TB, namespace string) {
	key := client.ObjectKey{Namespace: namespace, Name: l.name}
	submit(t, key, l.job, l.runFor)
	awaitPhase(t, key, workload.AppWrapperSuspended)
	if !l.never {
		suspend(t, key, false)
	}
	for range l.evictions {
		awaitPhase(t, key, workload.AppWrapperRunning)
		suspend(t, key, true)
		awaitPhase(t, key, workload.AppWrapperSuspended)
		suspend(t, key, false)
	}
	if l.deleted {
		awaitPhase(t, key, workload.AppWrapperRunning)
		remove(t, key)
		awaitGone(t, key)
		return
	}
	aw := awaitPhase(t, key, l.ends)
	if aw.Status.Retries != l.retries {
		t.Errorf("%s: %d retries, want %d", l.name, aw.Status.Retries, l.retries)
	}
	wantSaneTimes(t, aw)
}

// wantSaneTimes fails if a condition is older than the AppWrapper or in the future.
func wantSaneTimes(t testing.TB, aw *workload.AppWrapper) {
	for _, c := range aw.Status.Conditions {
		if at := c.LastTransitionTime; at.Before(&aw.CreationTimestamp) || at.After(time.Now()) {
			t.Errorf("%s: the condition %s has the time %s", aw.Name, c.Type, at)
		}
	}
}

// submit creates an AppWrapper of a Job with two pods, suspended as by Kueue's webhook.
func submit(t testing.TB, key client.ObjectKey, spec map[string]any, runFor string) {
	pods := map[string]any{
		"spec": map[string]any{"restartPolicy": "Never", "containers": []any{map[string]any{"name": "c", "image": "work"}}},
	}
	if runFor != "" {
		pods["metadata"] = map[string]any{"annotations": map[string]any{"localcluster.mlbatch.dev/run-for": runFor}}
	}
	job := map[string]any{"parallelism": 2, "completions": 2, "template": pods}
	for field, value := range spec {
		job[field] = value
	}
	wrap(t, key, map[string]any{"apiVersion": "batch/v1", "kind": "Job", "metadata": map[string]any{"name": key.Name}, "spec": job})
}

func wrap(t testing.TB, key client.ObjectKey, object map[string]any) {
	t.Helper()
	raw, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	aw := &workload.AppWrapper{}
	aw.Namespace, aw.Name = key.Namespace, key.Name
	aw.Annotations = map[string]string{workload.RetryLimitAnnotation: "1"}
	aw.Spec = workload.AppWrapperSpec{Suspend: true, Components: []workload.AppWrapperComponent{{Template: apiruntime.RawExtension{Raw: raw}}}}
	await(t, key.Name+" is made", func(ctx context.Context) error { return admin.Create(ctx, aw) })
}

// suspend sets suspend, as Kueue does.
func suspend(t testing.TB, key client.ObjectKey, value bool) {
	t.Helper()
	aw := &workload.AppWrapper{}
	aw.Namespace, aw.Name = key.Namespace, key.Name
	patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"suspend":%t}}`, value))
	await(t, key.Name+" is patched", func(ctx context.Context) error { return admin.Patch(ctx, aw, patch) })
}

func remove(t testing.TB, key client.ObjectKey) {
	t.Helper()
	aw := &workload.AppWrapper{}
	aw.Namespace, aw.Name = key.Namespace, key.Name
	await(t, key.Name+" is deleted", func(ctx context.Context) error { return client.IgnoreNotFound(admin.Delete(ctx, aw)) })
}

// awaitPhase waits for a phase and, if the phase can have them, for ready pods.
func awaitPhase(t testing.TB, key client.ObjectKey, phase workload.AppWrapperPhase) *workload.AppWrapper {
	t.Helper()
	aw := &workload.AppWrapper{}
	await(t, fmt.Sprintf("%s is %s", key.Name, phase), func(ctx context.Context) error {
		if err := admin.Get(ctx, key, aw); err != nil {
			return err
		}
		ready := meta.IsStatusConditionTrue(aw.Status.Conditions, string(workload.PodsReady))
		if aw.Status.Phase != phase || phase == workload.AppWrapperRunning && !ready {
			return fmt.Errorf("it is %s; conditions are %v", aw.Status.Phase, aw.Status.Conditions)
		}
		return nil
	})
	return aw
}

func awaitGone(t testing.TB, key client.ObjectKey) {
	t.Helper()
	await(t, key.Name+" is gone", func(ctx context.Context) error {
		aw := &workload.AppWrapper{}
		err := admin.Get(ctx, key, aw)
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("it is %s (%w)", aw.Status.Phase, err)
	})
}
