// SPDX-License-Identifier: Apache-2.0

package cordon

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/internal/nodehealth"
	"github.com/mlbatch/mlbatch/test/fakeapiserver"
	"github.com/mlbatch/mlbatch/test/patience"
)

// start runs the whole controller with caches that keep as little of nodes as the real one's.
func start(t *testing.T, api *fakeapiserver.Server) (stop func()) {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{v1beta2.AddToScheme, corev1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	slim := func(object any) (any, error) {
		if node, ok := object.(*corev1.Node); ok {
			return nodehealth.Rules{}.Slim(node), nil
		}
		return object, nil
	}
	caches := cache.Options{ByObject: map[client.Object]cache.ByObject{&corev1.Node{}: {Transform: slim}}}
	may := nodehealth.Cordoning{Nodes: 1, AppWrappers: 3, Teams: 2}
	return api.Manage(t, ctrl.Options{Scheme: scheme, Cache: caches}, func(mgr ctrl.Manager) error {
		return Setup(mgr, Settings{Cordoning: may, Remembered: time.Hour})
	})
}

// put adds three AppWrappers of two teams that blame a node from now on.
func put(t *testing.T, api *fakeapiserver.Server, node string) {
	t.Helper()
	until := time.Now().Add(time.Hour).UTC().Format(time.RFC3339)
	for i, team := range []string{"blue", "blue", "green"} {
		err := api.Put(fmt.Appendf(nil, `{"apiVersion": "workload.codeflare.dev/v1beta2", "kind": "AppWrapper", "metadata": {"namespace": %q, "name": "%s-%d", "uid": "%s-%d"},
			"spec": {"components": []}, "status": {"phase": "Running", "avoidedNodes": [{"name": %q, "cause": "PodRejected UnexpectedAdmissionError", "until": %q}]}}`, team, node, i, node, i, node, until))
		if err != nil {
			t.Fatal(err)
		}
	}
}

// comes waits until a node has one of our annotations, and no other.
func comes(t *testing.T, api *fakeapiserver.Server, node, annotation string) {
	t.Helper()
	err := patience.PollFor(t.Context(), 5*time.Millisecond, patience.Short, func(context.Context) (bool, error) {
		found := api.Get("nodes", types.NamespacedName{Name: node}).Annotations
		return len(found) == 1 && found[annotation] != "", nil
	})
	if err != nil {
		t.Fatalf("node %s does not get %s: %v; the requests were %q", node, annotation, err, api.Requests())
	}
}

func patches(api *fakeapiserver.Server) (sent []string) {
	return slices.DeleteFunc(api.Requests(), func(request string) bool { return !strings.HasPrefix(request, "PATCH /api/v1/nodes/") })
}

// Blames and uncordoned nodes wake the controller; heartbeats do not, and a restart repeats nothing.
func TestTheControllerWakesForBlamesAndCordons(t *testing.T) {
	api := fakeapiserver.Start(v1beta2.GroupVersion.WithKind("AppWrapper"), corev1.SchemeGroupVersion.WithKind("Node"))
	defer api.Stop()
	for _, name := range []string{"a", "b"} {
		if err := api.Put(fmt.Appendf(nil, `{"apiVersion": "v1", "kind": "Node", "metadata": {"name": %q, "uid": %q, "creationTimestamp": "2026-01-01T00:00:00Z"}, "spec": {}, "status": {}}`, name, name)); err != nil {
			t.Fatal(err)
		}
	}
	change := func(name, patch string) {
		if err := api.Patch("nodes", types.NamespacedName{Name: name}, patch); err != nil {
			t.Fatal(err)
		}
	}
	stop := start(t, api)
	put(t, api, "a")
	comes(t, api, "a", v1beta2.CordonedAnnotation)
	put(t, api, "b")
	stop()
	stop = start(t, api)
	change("a", `{"status": {"conditions": [{"type": "Ready", "status": "True"}]}}`)
	change("a", `{"spec": {"unschedulable": null}}`)
	comes(t, api, "a", v1beta2.UncordonedAnnotation)
	comes(t, api, "b", v1beta2.CordonedAnnotation)
	stop()
	if sent := patches(api); len(sent) != 3 {
		t.Errorf("it sends %q, want each node to be cordoned once, and the first to start afresh", sent)
	}
}

func TestWithoutTheWishNothingIsWatched(t *testing.T) {
	if err := Setup(nil, Settings{}); err != nil {
		t.Error(err)
	}
}
