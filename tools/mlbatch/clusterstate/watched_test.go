// SPDX-License-Identifier: Apache-2.0

package clusterstate_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mlbatch/mlbatch/test/fakeapiserver"
	"github.com/mlbatch/mlbatch/test/patience"
	"github.com/mlbatch/mlbatch/tools/mlbatch/clusterstate"
)

// watchPods is a server with so many pods of namespace blue, and a client that watches them.
func watchPods(t *testing.T, pods int, pace clusterstate.Pace) (*fakeapiserver.Server, *clusterstate.Watched) {
	t.Helper()
	api := fakeapiserver.Start(schema.GroupVersionKind{Version: "v1", Kind: "Pod"})
	t.Cleanup(api.Stop)
	for i := range pods {
		putPod(t, api, fmt.Sprintf("p%04d", i))
	}
	c, err := client.NewWithWatch(api.Config(), client.Options{Mapper: api.Mapper()})
	if err != nil {
		t.Fatal(err)
	}
	return api, clusterstate.Watch(t.Context(), c, pace)
}

func putPod(t *testing.T, api *fakeapiserver.Server, name string) {
	t.Helper()
	if err := api.Put([]byte(`{"apiVersion":"v1","kind":"Pod","metadata":{"namespace":"blue","name":"` + name + `"}}`)); err != nil {
		t.Fatal(err)
	}
}

// names are those of all pods of blue.
func names(t *testing.T, w *clusterstate.Watched) (all []string) {
	t.Helper()
	pods, err := clusterstate.List[corev1.Pod](t.Context(), w, &corev1.PodList{}, client.InNamespace("blue"))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range pods {
		all = append(all, p.Name)
	}
	return all
}

func until(t *testing.T, is func() bool) {
	t.Helper()
	if err := patience.PollFor(t.Context(), 5*time.Millisecond, patience.Short, func(context.Context) (bool, error) { return is(), nil }); err != nil {
		t.Fatal(err)
	}
}

var long = clusterstate.Pace{Doubt: time.Hour, Poll: time.Hour, Idle: time.Hour}

// What was listed is answered from memory, in pages, in the order of an API server, and follows changes.
func TestWhatWasListedIsKept(t *testing.T) {
	api, w := watchPods(t, 1200, long)
	all := names(t, w)
	if len(all) != 1200 || !slices.IsSorted(all) {
		t.Fatalf("got %d", len(all))
	}
	until(t, func() bool { return len(api.Watched()) == 1 })
	api.Requests()
	first := &corev1.PodList{}
	if err := w.List(t.Context(), first, client.InNamespace("blue"), client.Limit(500)); err != nil || len(first.Items) != 500 || first.Continue == "" {
		t.Errorf("the first page has %d, %q, %v", len(first.Items), first.Continue, err)
	}
	first.Items[0].Name = "changed by whoever has asked"
	changed := w.Changed()
	putPod(t, api, "p0000a")
	<-changed
	if again := names(t, w); len(again) != 1201 || again[0] != "p0000" || again[1] != "p0000a" {
		t.Errorf("got %d: %q", len(again), again[:2])
	}
	if requests := api.Requests(); len(requests) > 0 {
		t.Errorf("it asked %q", requests)
	}
}

// An object is found in a list that has it, or else watched, also if it does not exist yet.
func TestWhatWasReadIsWatched(t *testing.T) {
	for _, listed := range []bool{false, true} {
		api, w := watchPods(t, 1, long)
		if listed {
			names(t, w)
		}
		get := func(name string) error {
			return w.Get(t.Context(), client.ObjectKey{Namespace: "blue", Name: name}, &corev1.Pod{})
		}
		if err := get("p0000"); err != nil {
			t.Error(err)
		}
		if err := get("later"); !apierrors.IsNotFound(err) {
			t.Errorf("got %v", err)
		}
		putPod(t, api, "later")
		until(t, func() bool { return get("later") == nil })
		api.Requests()
		if err := get("p0000"); err != nil || len(api.Requests()) > 0 {
			t.Errorf("it asked again, %v", err)
		}
	}
}

// Rights differ: to get without to list, or to list without to watch.
func TestWithoutTheRightToWatchItIsAskedAgain(t *testing.T) {
	api, w := watchPods(t, 1, clusterstate.Pace{Doubt: time.Hour, Idle: time.Hour})
	api.Refuses = func(verb, _, _ string) bool { return verb == "watch" }
	names(t, w)
	putPod(t, api, "later")
	until(t, func() bool { return len(names(t, w)) == 2 })

	api, w = watchPods(t, 1, long)
	api.Refuses = func(verb, _, _ string) bool { return verb != "get" }
	for range 3 {
		pod := &corev1.Pod{}
		if err := w.Get(t.Context(), client.ObjectKey{Namespace: "blue", Name: "p0000"}, pod); err != nil || pod.Name != "p0000" {
			t.Errorf("got %q, %v", pod.Name, err)
		}
	}
	if n := fakeapiserver.Count(api.Requests())["GET pods"]; n != 1 {
		t.Errorf("it asked %d times", n)
	}
}

// A refusal counts until something changes, and then as long as is set.
func TestARefusalIsRemembered(t *testing.T) {
	api, w := watchPods(t, 1, clusterstate.Pace{Idle: time.Hour})
	refuse := make(chan bool, 1)
	refuse <- true
	api.Refuses = func(string, string, string) bool {
		now := <-refuse
		refuse <- now
		return now
	}
	for range 5 {
		if err := w.List(t.Context(), &corev1.PodList{}); !apierrors.IsForbidden(err) {
			t.Errorf("got %v", err)
		}
	}
	if n := len(api.Requests()); n != 1 {
		t.Errorf("it asked %d times", n)
	}
	<-refuse
	refuse <- false
	w.Doubt()
	if err := w.List(t.Context(), &corev1.PodList{}); err != nil {
		t.Error(err)
	}
}

// A list at a revision is as it was then, whatever is watched.
func TestAListAtARevisionIsNotKept(t *testing.T) {
	api, w := watchPods(t, 1, long)
	m := &clusterstate.Moment{Client: w, Revision: "1"}
	for range 2 {
		if err := m.List(t.Context(), &corev1.PodList{}); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(api.Requests()); n != 2 {
		t.Errorf("it asked %d times", n)
	}
}
