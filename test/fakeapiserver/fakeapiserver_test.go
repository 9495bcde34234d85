// SPDX-License-Identifier: Apache-2.0

package fakeapiserver_test

import (
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mlbatch/mlbatch/test/fakeapiserver"
)

var jobKind = schema.GroupVersionKind{Group: "batch", Version: "v1", Kind: "Job"}

// start returns a server with a Job, and a client that can read it.
func start(t *testing.T) (*fakeapiserver.Server, client.Client) {
	t.Helper()
	api := fakeapiserver.Start(jobKind)
	t.Cleanup(api.Stop)
	err := api.Put([]byte(`{"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"j","namespace":"n","labels":{"a":"b"},"finalizers":["f"]},"spec":{"count":1},"status":{"x":"old","y":2}}`))
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.New(api.Config(), client.Options{Mapper: api.Mapper()})
	if err != nil {
		t.Fatal(err)
	}
	return api, c
}

func job() *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(jobKind)
	object.SetNamespace("n")
	object.SetName("j")
	return object
}

// metadata is the object that a client passes to read only metadata.
func metadata() *metav1.PartialObjectMetadata {
	object := &metav1.PartialObjectMetadata{}
	object.SetGroupVersionKind(jobKind)
	object.Namespace, object.Name = "n", "j"
	return object
}

func merge(patch string) client.Patch { return client.RawPatch(types.MergePatchType, []byte(patch)) }

func TestAStatusAndTheRestArePatchedApart(t *testing.T) {
	api, c := start(t)
	object := job()
	if err := c.Status().Patch(t.Context(), object, merge(`{"spec":{"count":5},"status":{"x":null,"z":{"in":3}}}`)); err != nil {
		t.Fatal(err)
	}
	if err := c.Patch(t.Context(), object, merge(`{"spec":{"more":2},"status":{"y":7}}`)); err != nil {
		t.Fatal(err)
	}
	stored := api.Get("jobs", client.ObjectKeyFromObject(object))
	if spec, status := string(stored.Fields["spec"]), string(stored.Fields["status"]); spec != `{"count":1,"more":2}` || status != `{"y":2,"z":{"in":3}}` {
		t.Errorf("spec %s, status %s", spec, status)
	}
	read := job()
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(read), read); err != nil || read.GetResourceVersion() != stored.ResourceVersion || read.GetLabels()["a"] != "b" {
		t.Errorf("%v, %v", read, err)
	}
}

func TestAPatchOfAnEarlierVersionIsAConflict(t *testing.T) {
	_, c := start(t)
	object := job()
	early := `{"metadata":{"resourceVersion":"0"},"status":{"x":"new"}}`
	if err := c.Status().Patch(t.Context(), object, merge(early)); !apierrors.IsConflict(err) {
		t.Errorf("got %v", err)
	}
}

func TestAJSONPatchChangesOnlyWhatItNames(t *testing.T) {
	api, c := start(t)
	object := job()
	version := api.Get("jobs", client.ObjectKeyFromObject(object)).ResourceVersion
	patch := func(version string) client.Patch {
		return client.RawPatch(types.JSONPatchType, []byte(`[{"op":"replace","path":"/metadata/resourceVersion","value":"`+version+`"},
			{"op":"add","path":"/spec/more","value":2},{"op":"add","path":"/metadata/annotations","value":{"a":"b"}}]`))
	}
	if err := c.Patch(t.Context(), object, patch("0")); !apierrors.IsConflict(err) {
		t.Errorf("of an earlier version: %v", err)
	}
	if err := c.Patch(t.Context(), object, patch(version)); err != nil {
		t.Fatal(err)
	}
	stored := api.Get("jobs", client.ObjectKeyFromObject(object))
	if spec := string(stored.Fields["spec"]); spec != `{"count":1,"more":2}` || stored.Annotations["a"] != "b" || stored.Labels["a"] != "b" {
		t.Errorf("spec %s, metadata %+v", spec, stored.ObjectMeta)
	}
	if err := c.Patch(t.Context(), object, client.RawPatch(types.JSONPatchType, []byte(`[{"op":"remove","path":"/none"}]`))); err == nil {
		t.Error("what is not there was removed")
	}
}

func TestAnApplyCreatesWhatDoesNotExist(t *testing.T) {
	api, c := start(t)
	object := job()
	apply := client.RawPatch(types.ApplyPatchType, []byte(`{"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"k"},"spec":{"count":3}}`))
	if err := c.Patch(t.Context(), object, apply, client.FieldOwner("me")); !apierrors.IsConflict(err) {
		t.Errorf("of what exists: %v", err)
	}
	object.SetName("k")
	if err := c.Patch(t.Context(), object, apply, client.FieldOwner("me")); err != nil {
		t.Fatal(err)
	}
	if stored := api.Get("jobs", client.ObjectKeyFromObject(object)); stored == nil || string(stored.Fields["spec"]) != `{"count":3}` || stored.UID == "" {
		t.Errorf("got %+v", stored)
	}
}

func TestADeletionCanNameAVersion(t *testing.T) {
	api, c := start(t)
	object, now := job(), api.Get("jobs", types.NamespacedName{Namespace: "n", Name: "j"}).ResourceVersion
	early := "0"
	if err := c.Delete(t.Context(), object, client.Preconditions{ResourceVersion: &early}); !apierrors.IsConflict(err) {
		t.Errorf("of an earlier version: %v", err)
	}
	if err := c.Delete(t.Context(), object, client.Preconditions{ResourceVersion: &now}); err != nil {
		t.Error(err)
	}
}

// Like a real server, it answers in protobuf.
func TestWhoWantsMetadataAloneIsGivenThat(t *testing.T) {
	api, c := start(t)
	object := metadata()
	if err := c.Status().Patch(t.Context(), object, merge(`{"status":{"x":"new"}}`)); err != nil {
		t.Fatal(err)
	}
	stored := api.Get("jobs", client.ObjectKeyFromObject(object))
	if object.ResourceVersion != stored.ResourceVersion || object.UID != stored.UID || object.Finalizers[0] != "f" || object.Labels["a"] != "b" {
		t.Errorf("got %v of %v", object, stored)
	}
}

func TestWhatIsToBeDeletedGoesWithItsLastFinalizer(t *testing.T) {
	api, c := start(t)
	object := metadata()
	key := client.ObjectKeyFromObject(object)
	if err := c.Delete(t.Context(), object); err != nil || api.Get("jobs", key) == nil || api.Get("jobs", key).DeletionTimestamp == nil {
		t.Fatalf("%v, %v", api.Get("jobs", key), err)
	}
	if err := c.Patch(t.Context(), object, merge(`{"metadata":{"finalizers":null}}`)); err != nil || api.Get("jobs", key) != nil {
		t.Errorf("%v, %v", api.Get("jobs", key), err)
	}
}

func TestItSaysWhichPatchesItDoesNotKnow(t *testing.T) {
	_, c := start(t)
	err := c.Patch(t.Context(), job(), merge(`{"metadata":{"labels":{"a":null}}}`))
	if err == nil || !strings.Contains(err.Error(), "labels") {
		t.Errorf("got %v", err)
	}
}

// An object that leaves a selection is told as deleted, and one that comes as added. A watch begins where a list ends.
func TestAWatchTellsOfWhatItSelects(t *testing.T) {
	api, _ := start(t)
	c, err := client.NewWithWatch(api.Config(), client.Options{Mapper: api.Mapper()})
	if err != nil {
		t.Fatal(err)
	}
	found := &unstructured.UnstructuredList{}
	found.SetGroupVersionKind(jobKind)
	old := client.MatchingFields{"status.x": "old"}
	if err := c.List(t.Context(), found, client.InNamespace("n"), old); err != nil || len(found.Items) != 1 {
		t.Fatalf("%d, %v", len(found.Items), err)
	}
	key := types.NamespacedName{Namespace: "n", Name: "j"}
	if err := api.Patch("jobs", key, `{"status":{"x":"new"}}`); err != nil {
		t.Fatal(err)
	}
	since := &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: found.GetResourceVersion()}}
	events, err := c.Watch(t.Context(), found, since, client.InNamespace("n"), old)
	if err != nil {
		t.Fatal(err)
	}
	defer events.Stop()
	if e := <-events.ResultChan(); e.Type != watch.Deleted {
		t.Errorf("got %v", e)
	}
	if err := api.Patch("jobs", key, `{"status":{"x":"old"}}`); err != nil {
		t.Fatal(err)
	}
	if e := <-events.ResultChan(); e.Type != watch.Added {
		t.Errorf("got %v", e)
	}
}

func TestWhatIsRefusedIsForbidden(t *testing.T) {
	api, c := start(t)
	api.Refuses = func(verb, resource, namespace string) bool {
		return verb == "get" && resource == "jobs" && namespace == "n"
	}
	if err := c.Get(t.Context(), types.NamespacedName{Namespace: "n", Name: "j"}, job()); !apierrors.IsForbidden(err) {
		t.Errorf("got %v", err)
	}
}

func TestAListHasWhatTheSelectorSelects(t *testing.T) {
	_, c := start(t)
	for selector, want := range map[string]int{"a=b": 1, "a": 1, "a=c": 0} {
		found := &unstructured.UnstructuredList{}
		found.SetGroupVersionKind(jobKind)
		which, err := labels.Parse(selector)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.List(t.Context(), found, client.InNamespace("n"), client.MatchingLabelsSelector{Selector: which}); err != nil || len(found.Items) != want {
			t.Errorf("%s: %d, %v", selector, len(found.Items), err)
		}
	}
}
