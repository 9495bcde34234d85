// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package chaos_test

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workload "github.com/mlbatch/mlbatch/controller/api/v1beta2"
)

// TestANamespaceIsDeleted deletes a namespace with AppWrappers in different phases. The
// namespace must go, and the controller must not keep trying to create objects in it.
func TestANamespaceIsDeleted(t *testing.T) {
	const name = "doomed"
	way := newProxy(t)
	keepController(t, way)
	awaitLeader(t, "")
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if err := admin.Create(t.Context(), namespace); err != nil {
		t.Fatal(err)
	}
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "three-jobs"}}
	quota.Spec.Hard = corev1.ResourceList{"count/jobs.batch": resource.MustParse("3")}
	if err := admin.Create(t.Context(), quota); err != nil {
		t.Fatal(err)
	}
	keys := map[string]client.ObjectKey{}
	for _, l := range []life{
		{name: "waits"}, {name: "runs"}, {name: "succeeds", runFor: "1s"},
		{name: "fails", job: map[string]any{"activeDeadlineSeconds": 1}}, {name: "is-refused"},
	} {
		key := client.ObjectKey{Namespace: name, Name: l.name}
		keys[l.name] = key
		submit(t, key, l.job, l.runFor)
		awaitPhase(t, key, workload.AppWrapperSuspended)
	}
	for _, life := range []string{"runs", "succeeds", "fails"} {
		suspend(t, keys[life], false)
	}
	awaitPhase(t, keys["runs"], workload.AppWrapperRunning)
	awaitPhase(t, keys["succeeds"], workload.AppWrapperSucceeded)
	suspend(t, keys["is-refused"], false)
	before := way.created(name)
	if err := admin.Delete(t.Context(), namespace); err != nil {
		t.Fatal(err)
	}
	await(t, "the namespace is gone", func(ctx context.Context) error {
		err := admin.Get(ctx, client.ObjectKeyFromObject(namespace), namespace)
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("it is %s, %v (%w)", namespace.Status.Phase, namespace.Status.Conditions, err)
	})
	if after := way.created(name) - before; after > 3*len(keys) {
		t.Errorf("the controller tried to create %d more objects", after)
	}
}
