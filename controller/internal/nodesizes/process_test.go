// SPDX-License-Identifier: Apache-2.0

package nodesizes

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/internal/nodehealth"
	"github.com/mlbatch/mlbatch/controller/internal/nodewatch"
	"github.com/mlbatch/mlbatch/test/fakeapiserver"
	"github.com/mlbatch/mlbatch/test/patience"
)

// api is an API server with two flavors, of which one has two nodes.
type api struct {
	*testing.T
	*fakeapiserver.Server
}

func start(t *testing.T) *api {
	t.Helper()
	a := &api{T: t, Server: fakeapiserver.Start(kueue.SchemeGroupVersion.WithKind("ResourceFlavor"), corev1.SchemeGroupVersion.WithKind("Node"), corev1.SchemeGroupVersion.WithKind("ConfigMap"))}
	t.Cleanup(a.Stop)
	for _, model := range []string{"a100", "h100"} {
		a.put(`{"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "ResourceFlavor", "metadata": {"name": %q, "annotations": {"own": "kept"}},
			"spec": {"nodeLabels": {"model": %q}}}`, model, model)
	}
	a.node("a", "a100", 8)
	a.node("b", "a100", 4)
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{kueue.AddToScheme, authorizationv1.AddToScheme, corev1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	a.Manage(a, ctrl.Options{Scheme: scheme}, func(mgr ctrl.Manager) error {
		return setup(mgr, nodewatch.New(mgr, nodehealth.Rules{}, "mlbatch-system"), time.Millisecond)
	})
	return a
}

func (a *api) put(text string, args ...any) {
	a.Helper()
	if err := a.Put(fmt.Appendf(nil, text, args...)); err != nil {
		a.Fatal(err)
	}
}

func (a *api) node(name, model string, gpus int) {
	a.Helper()
	a.put(`{"apiVersion": "v1", "kind": "Node", "metadata": {"name": %q, "labels": {"model": %q}},
		"spec": {}, "status": {"allocatable": {"nvidia.com/gpu": "%d", "pods": "110"}}}`, name, model, gpus)
}

func (a *api) patch(resource, name, patch string) {
	a.Helper()
	if err := a.Patch(resource, types.NamespacedName{Name: name}, patch); err != nil {
		a.Fatal(err)
	}
}

// says waits until a flavor says it.
func (a *api) says(flavor, want string) {
	a.Helper()
	var notes map[string]string
	err := patience.PollFor(a.Context(), 5*time.Millisecond, patience.Short, func(context.Context) (bool, error) {
		notes = a.Get("resourceflavors", types.NamespacedName{Name: flavor}).Annotations
		got, written := notes[v1beta2.LargestNodeAnnotation]
		return got == want && written == (want != "") && notes["own"] == "kept", nil
	})
	if err != nil {
		a.Fatalf("%s has %q, not %s; the requests were %q", flavor, notes, want, a.Requests())
	}
}

func TestFlavorsFollowTheirLargestNodes(t *testing.T) {
	a := start(t)
	a.says("a100", `{"nvidia.com/gpu":"8"}`)
	a.says("h100", "")
	a.Delete("nodes", types.NamespacedName{Name: "a"})
	a.says("a100", `{"nvidia.com/gpu":"4"}`)
	a.node("b", "h100", 4)
	a.says("a100", "")
	a.says("h100", `{"nvidia.com/gpu":"4"}`)
	// What another hand wrote is corrected.
	a.patch("resourceflavors", "a100", fmt.Sprintf(`{"metadata": {"annotations": {%q: "{\"cpu\":\"1\"}"}}}`, v1beta2.LargestNodeAnnotation))
	a.says("a100", "")
}

// What changes nothing is not written: heartbeats, and nodes that are no larger.
func TestOnlyWhatChangesIsWritten(t *testing.T) {
	a := start(t)
	a.says("a100", `{"nvidia.com/gpu":"8"}`)
	for i := range 10 {
		a.patch("nodes", "a", fmt.Sprintf(`{"status": {"conditions": [{"type": "Ready", "status": "True", "lastHeartbeatTime": "2026-01-01T00:00:0%dZ"}]}}`, i))
	}
	a.patch("nodes", "b", `{"spec": {"unschedulable": true}}`)
	a.node("c", "a100", 8)
	a.node("d", "a100", 16)
	a.says("a100", `{"nvidia.com/gpu":"16"}`)
	written := slices.DeleteFunc(a.Requests(), func(request string) bool {
		return strings.HasPrefix(request, "GET ") || strings.HasSuffix(request, "reviews")
	})
	// A write from a cache that lags is refused, and made again.
	own := "PATCH /apis/kueue.x-k8s.io/v1beta2/resourceflavors/a100"
	if len(written) < 2 || !slices.Equal(slices.Compact(written), []string{own}) {
		t.Errorf("the requests are %q", written)
	}
}

// The chart gives it no right to nodes then, and it would wait for one without end.
func TestNothingWaitsForNodesThatMayNotBeRead(t *testing.T) {
	if err := Setup(nil, nil, false); err != nil {
		t.Error(err)
	}
}
