// SPDX-License-Identifier: Apache-2.0

package slackqueue

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/mlbatch/mlbatch/controller/internal/nodewatch"
	"github.com/mlbatch/mlbatch/controller/internal/slackquota"
	"github.com/mlbatch/mlbatch/test/fakeapiserver"
	"github.com/mlbatch/mlbatch/test/patience"
)

// api is an API server with the slack queues of two cohorts.
type api struct {
	*testing.T
	*fakeapiserver.Server
}

func newAPI(t *testing.T, kinds ...schema.GroupVersionKind) *api {
	t.Helper()
	if kinds == nil {
		kinds = []schema.GroupVersionKind{kueue.SchemeGroupVersion.WithKind("ClusterQueue"), kueue.SchemeGroupVersion.WithKind("ResourceFlavor"),
			corev1.SchemeGroupVersion.WithKind("Node"), corev1.SchemeGroupVersion.WithKind("ConfigMap")}
	}
	a := &api{T: t, Server: fakeapiserver.Start(kinds...)}
	t.Cleanup(a.Stop)
	return a
}

// with adds flavors a and b with 10 nodes of 8 GPUs each, and their slack queues.
func (a *api) with() *api {
	a.Helper()
	for _, model := range []string{"a", "b"} {
		a.put(`{"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "ResourceFlavor", "metadata": {"name": %q}, "spec": {"nodeLabels": {"model": %q}}}`, model, model)
		a.put(`{"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "ClusterQueue", "metadata": {"name": "slack-%s"}, "spec": {"cohortName": "cohort-%s",
			"resourceGroups": [{"coveredResources": ["nvidia.com/gpu"], "flavors": [{"name": %q, "resources": [{"name": "nvidia.com/gpu", "nominalQuota": "80"}]}]}]}}`,
			model, model, model)
		for i := range 10 {
			a.put(`{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "%s%d", "labels": {"model": %q}},
				"spec": {}, "status": {"capacity": {"nvidia.com/gpu": "8"}, "allocatable": {"nvidia.com/gpu": "8"}}}`, model, i, model)
		}
	}
	return a
}

func (a *api) put(text string, args ...any) {
	a.Helper()
	if err := a.Put(fmt.Appendf(nil, text, args...)); err != nil {
		a.Fatal(err)
	}
}

func (a *api) patch(resource, name, patch string) {
	a.Helper()
	if err := a.Patch(resource, types.NamespacedName{Name: name}, patch); err != nil {
		a.Fatal(err)
	}
}

// start runs the whole controller, until the test or the returned function ends it.
func (a *api) start(settle time.Duration) (stop func()) {
	a.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{kueue.AddToScheme, authorizationv1.AddToScheme, corev1.AddToScheme} {
		if err := add(scheme); err != nil {
			a.Fatal(err)
		}
	}
	s := Settings{Queues: []string{"slack-a", "slack-b", "absent"}, Namespace: "mlbatch-system"}
	return a.Manage(a, ctrl.Options{Scheme: scheme}, func(mgr ctrl.Manager) error {
		return setup(mgr, nodewatch.New(mgr, s.Rules, s.Namespace), s, settle)
	})
}

// lends waits for a limit; "" is none.
func (a *api) lends(queue, want string) {
	a.Helper()
	var got string
	err := patience.PollFor(a.Context(), 5*time.Millisecond, patience.Short, func(context.Context) (bool, error) {
		object := a.Get("clusterqueues", types.NamespacedName{Name: queue})
		if object == nil {
			return false, nil
		}
		var spec kueue.ClusterQueueSpec
		err := json.Unmarshal(object.Fields["spec"], &spec)
		if got = ""; err == nil {
			if limit := spec.ResourceGroups[0].Flavors[0].Resources[0].LendingLimit; limit != nil {
				got = limit.String()
			}
		}
		return got == want, err
	})
	if err != nil {
		a.Fatalf("%s lends %q, not %q (%v); the requests were %q", queue, got, want, err, a.Requests())
	}
}

// remembered waits until so many nodes are stored.
func (a *api) remembered(nodes int) {
	a.Helper()
	stored := map[string]string{}
	err := patience.PollFor(a.Context(), 5*time.Millisecond, patience.Short, func(context.Context) (bool, error) {
		object := a.Get("configmaps", types.NamespacedName{Namespace: "mlbatch-system", Name: slackquota.DevicesName})
		if object == nil {
			return false, nil
		}
		clear(stored)
		err := json.Unmarshal(object.Fields["data"], &stored)
		return len(stored) == nodes, err
	})
	if err != nil {
		a.Fatalf("%d nodes are stored, not %d: %v; the requests were %q", len(stored), nodes, err, a.Requests())
	}
}

// mustHaveSent checks all requests since the last call, but those for watches.
func (a *api) mustHaveSent(want ...string) {
	a.Helper()
	if sent := a.sent(); !slices.Equal(sent, want) {
		a.Errorf("the requests are %q, want %q", sent, want)
	}
}

func (a *api) sent() []string {
	sent := slices.DeleteFunc(a.Requests(), func(request string) bool {
		return strings.HasPrefix(request, "GET ") || strings.HasSuffix(request, "reviews")
	})
	slices.Sort(sent)
	return sent
}

const (
	ofA    = "PATCH /apis/kueue.x-k8s.io/v1beta2/clusterqueues/slack-a"
	ofB    = "PATCH /apis/kueue.x-k8s.io/v1beta2/clusterqueues/slack-b"
	store  = "PATCH /api/v1/namespaces/mlbatch-system/configmaps/mlbatch-node-devices"
	create = "POST /api/v1/namespaces/mlbatch-system/configmaps"
)

// long is how long changes are collected where a test must make several meanwhile.
var long = patience.For(2 * time.Second)

func TestARackThatFailsIsOneWrite(t *testing.T) {
	a := newAPI(t).with()
	a.start(long)
	a.remembered(20)
	a.mustHaveSent(create)
	for i := range 5 {
		a.patch("nodes", fmt.Sprintf("a%d", i), `{"spec": {"unschedulable": true}}`)
	}
	a.lends("slack-a", "40")
	a.mustHaveSent(ofA)
	for i := range 5 {
		a.patch("nodes", fmt.Sprintf("a%d", i), `{"spec": {"unschedulable": null}}`)
		a.patch("nodes", fmt.Sprintf("b%d", i), `{"spec": {"unschedulable": true}}`)
	}
	a.lends("slack-a", "")
	a.lends("slack-b", "40")
	a.mustHaveSent(ofA, ofB)
	if text := a.Get("clusterqueues", types.NamespacedName{Name: "slack-a"}).Annotations; len(text) > 0 {
		t.Errorf("the annotations remain: %q", text)
	}
}

// What follows heartbeats is the first write. Had they caused a request, it would be there.
func TestWhatChangesNothingCausesNoRequest(t *testing.T) {
	a := newAPI(t).with()
	a.start(time.Millisecond)
	a.remembered(20)
	a.Requests()
	for i := range 10 {
		a.patch("nodes", fmt.Sprintf("a%d", i), `{"status": {"conditions": [{"type": "Ready", "status": "True", "lastHeartbeatTime": "2026-01-01T00:00:00Z"}]}}`)
		a.patch("clusterqueues", "slack-a", fmt.Sprintf(`{"status": {"pendingWorkloads": %d}}`, i))
	}
	a.patch("nodes", "a0", `{"spec": {"unschedulable": true}}`)
	a.lends("slack-a", "72")
	a.patch("nodes", "b0", `{"spec": {"unschedulable": true}}`)
	a.lends("slack-b", "72")
	// While the cache lacks the new ConfigMap, the controller tries to create it again.
	sent := slices.DeleteFunc(a.Requests(), func(request string) bool { return request == create })
	if len(sent) < 2 || slices.ContainsFunc(sent, func(request string) bool { return request != ofA && request != ofB }) || !slices.Contains(sent, ofB) {
		t.Errorf("the requests are %q", sent)
	}
}

func TestALimitIsExactAfterARestart(t *testing.T) {
	a := newAPI(t).with()
	stop := a.start(time.Millisecond)
	a.remembered(20)
	a.patch("nodes", "a0", `{"spec": {"unschedulable": true}}`)
	a.lends("slack-a", "72")
	stop()
	a.Requests()
	// Meanwhile, a node is back, another has started anew without a device, and a third is gone.
	a.patch("nodes", "a0", `{"spec": {"unschedulable": null}}`)
	a.patch("nodes", "a1", `{"status": {"capacity": {"nvidia.com/gpu": "7"}, "allocatable": {"nvidia.com/gpu": "7"}}}`)
	a.Delete("nodes", types.NamespacedName{Name: "b0"})
	stop = a.start(long)
	a.lends("slack-a", "79")
	a.remembered(19)
	a.mustHaveSent(store, ofA)
	stop()
	// Nothing happens meanwhile: the first write is about what happens then.
	a.start(time.Millisecond)
	a.patch("nodes", "b1", `{"spec": {"unschedulable": true}}`)
	a.lends("slack-b", "72")
	// A write from a cache that lags is refused, and made again.
	if sent := a.sent(); !slices.Equal(slices.Compact(sent), []string{ofB}) {
		t.Errorf("the requests are %q", sent)
	}
}

// Whoever applies the queue again sets the own limit.
func TestAnApplyOfTheQueueIsCorrected(t *testing.T) {
	a := newAPI(t).with()
	a.start(time.Millisecond)
	a.patch("nodes", "a0", `{"spec": {"unschedulable": true}}`)
	a.lends("slack-a", "72")
	a.patch("clusterqueues", "slack-a", `{"spec": {"resourceGroups": [{"coveredResources": ["nvidia.com/gpu"],
		"flavors": [{"name": "a", "resources": [{"name": "nvidia.com/gpu", "nominalQuota": "60", "lendingLimit": "55"}]}]}]}}`)
	a.lends("slack-a", "52")
	a.patch("nodes", "a0", `{"spec": {"unschedulable": null}}`)
	a.lends("slack-a", "55")
	a.patch("resourceflavors", "b", `{"spec": {"nodeLabels": {"model": "a"}}}`)
	a.patch("nodes", "a0", `{"spec": {"unschedulable": true}}`)
	a.lends("slack-b", "72")
}

// The manager runs on without Kueue.
func TestTheControllerRunsWithoutKueue(t *testing.T) {
	newAPI(t, corev1.SchemeGroupVersion.WithKind("Node")).start(time.Millisecond)
}

func TestWithoutSlackQueuesNothingIsWatched(t *testing.T) {
	if err := Setup(nil, nil, Settings{}); err != nil {
		t.Error(err)
	}
}
