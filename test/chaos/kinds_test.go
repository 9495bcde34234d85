// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package chaos_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	workload "github.com/mlbatch/mlbatch/controller/api/v1beta2"
)

// The CRD that is deleted and created again is that of PyTorchJob. The tests play its operator,
// which creates no pods.
const pyTorchJobs = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: pytorchjobs.kubeflow.org}
spec:
  group: kubeflow.org
  scope: Namespaced
  names: {kind: PyTorchJob, plural: pytorchjobs, singular: pytorchjob}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`

const pyTorchJob = `
apiVersion: kubeflow.org/v1
kind: PyTorchJob
spec: {pytorchReplicaSpecs: {Worker: {replicas: 2, template: {spec: {containers: [{name: pytorch, image: work}]}}}}}
`

func decoded(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &object.Object); err != nil {
		t.Fatal(err)
	}
	return object
}

func install(t *testing.T) {
	t.Helper()
	await(t, "the kind is installed", func(ctx context.Context) error {
		err := admin.Create(ctx, decoded(t, pyTorchJobs))
		if apierrors.IsAlreadyExists(err) {
			return errors.New("it is still going")
		}
		return err
	})
	await(t, "the kind is served", func(ctx context.Context) error {
		return admin.List(ctx, listOfPyTorchJobs())
	})
}

func uninstall(t *testing.T) {
	t.Helper()
	await(t, "the kind is gone", func(ctx context.Context) error {
		err := admin.Delete(ctx, decoded(t, pyTorchJobs))
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("it is still there (%w)", err)
	})
}

func listOfPyTorchJobs() *unstructured.UnstructuredList {
	list := &unstructured.UnstructuredList{}
	list.SetAPIVersion("kubeflow.org/v1")
	list.SetKind("PyTorchJobList")
	return list
}

// train creates an AppWrapper of a PyTorchJob and unsuspends it.
func train(t *testing.T, name string) client.ObjectKey {
	t.Helper()
	key := client.ObjectKey{Namespace: "kinds", Name: name}
	object := decoded(t, pyTorchJob)
	object.SetName(name)
	wrap(t, key, object.Object)
	awaitPhase(t, key, workload.AppWrapperSuspended)
	suspend(t, key, false)
	return key
}

// report sets the condition that the operator sets when its pods have succeeded.
func report(t *testing.T, key client.ObjectKey) {
	t.Helper()
	object := decoded(t, pyTorchJob)
	object.SetNamespace(key.Namespace)
	object.SetName(key.Name)
	patch := client.RawPatch(types.MergePatchType, []byte(`{"status":{"conditions":[{"type":"Succeeded","status":"True"}]}}`))
	await(t, key.Name+" reports success", func(ctx context.Context) error { return admin.Patch(ctx, object, patch) })
}

// TestAWrappedKindGoesAndComes deletes the CRD of a wrapped kind while AppWrappers of it exist.
// The controller's cache sees one of the objects go and misses the other.
func TestAWrappedKindGoesAndComes(t *testing.T) {
	way := newProxy(t)
	keepController(t, way)
	awaitLeader(t, "")
	if err := makeNamespace("kinds"); err != nil {
		t.Fatal(err)
	}
	early := train(t, "before-it-is-there")
	awaitPhase(t, early, workload.AppWrapperFailed)
	install(t)
	done := train(t, "succeeds")
	report(t, done)
	awaitPhase(t, done, workload.AppWrapperSucceeded)

	watched, unwatched := train(t, "goes"), train(t, "goes-unwatched")
	awaitDeployed(t, watched)
	awaitDeployed(t, unwatched)
	uninstallPart(t, way)
	awaitPhase(t, watched, workload.AppWrapperFailed)
	for _, key := range []client.ObjectKey{early, done, watched, unwatched} {
		remove(t, key)
		awaitGone(t, key)
	}

	install(t)
	again := train(t, "succeeds")
	report(t, again)
	awaitPhase(t, again, workload.AppWrapperSucceeded)
	clear(t, "kinds")
	uninstall(t)
}

// uninstallPart deletes one object, and deletes the CRD only after the controller's watch is
// closed.
func uninstallPart(t *testing.T, way *proxy) {
	t.Helper()
	object := decoded(t, pyTorchJob)
	object.SetNamespace("kinds")
	object.SetName("goes")
	await(t, "the first is deleted", func(ctx context.Context) error { return client.IgnoreNotFound(admin.Delete(ctx, object)) })
	awaitPhase(t, client.ObjectKey{Namespace: "kinds", Name: "goes"}, workload.AppWrapperFailed)
	way.shut("pytorchjobs")
	uninstall(t)
	way.shut("")
}

func awaitDeployed(t *testing.T, key client.ObjectKey) {
	t.Helper()
	await(t, key.Name+" is deployed", func(ctx context.Context) error {
		object := decoded(t, pyTorchJob)
		return admin.Get(ctx, key, object)
	})
	await(t, key.Name+" runs", func(ctx context.Context) error {
		aw := &workload.AppWrapper{}
		if err := admin.Get(ctx, key, aw); err != nil || aw.Status.Phase != workload.AppWrapperRunning {
			return fmt.Errorf("it is %s (%w)", aw.Status.Phase, err)
		}
		return nil
	})
}
