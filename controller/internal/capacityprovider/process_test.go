// SPDX-License-Identifier: Apache-2.0

package capacityprovider

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
	"github.com/mlbatch/mlbatch/test/fakeapiserver"
	"github.com/mlbatch/mlbatch/test/patience"
)

// api is an API server of Kueue 0.20, as its proposal documents it.
type api struct {
	*testing.T
	*fakeapiserver.Server
}

func newAPI(t *testing.T, kinds ...schema.GroupVersionKind) *api {
	t.Helper()
	kinds = append(kinds, kueue.SchemeGroupVersion.WithKind("ResourceFlavor"), corev1.SchemeGroupVersion.WithKind("Node"), corev1.SchemeGroupVersion.WithKind("ConfigMap"))
	a := &api{T: t, Server: fakeapiserver.Start(kinds...)}
	t.Cleanup(a.Stop)
	return a
}

// newCluster has two nodes of a flavor, and a provider for it.
func newCluster(t *testing.T) *api {
	t.Helper()
	a := newAPI(t, version.WithKind("CapacityProvider"))
	a.put(`{"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "ResourceFlavor", "metadata": {"name": "a100"}, "spec": {"nodeLabels": {"model": "a100"}}}`)
	a.provider("own", ControllerName)
	for _, node := range []string{"a", "b"} {
		a.put(`{"apiVersion": "v1", "kind": "Node", "metadata": {"name": %q, "labels": {"model": "a100"}},
			"spec": {}, "status": {"capacity": {"nvidia.com/gpu": "8"}, "allocatable": {"nvidia.com/gpu": "8"}}}`, node)
	}
	return a
}

func (a *api) provider(name, controller string) {
	a.Helper()
	a.put(`{"apiVersion": "kueue.x-k8s.io/v1alpha1", "kind": "CapacityProvider", "metadata": {"name": %q},
		"spec": {"managedFlavors": [{"name": "a100"}, {"name": "h100"}], "controllerName": %q}}`, name, controller)
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

func (a *api) start() {
	a.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{kueue.AddToScheme, authorizationv1.AddToScheme, corev1.AddToScheme} {
		if err := add(scheme); err != nil {
			a.Fatal(err)
		}
	}
	s := Settings{Providers: []string{"absent", "others", "own"}}
	a.Manage(a, ctrl.Options{Scheme: scheme}, func(mgr ctrl.Manager) error {
		return setup(mgr, nodewatch.New(mgr, s.Rules, "mlbatch-system"), s, time.Millisecond)
	})
}

// says is what a provider has, without the time.
func (a *api) says(name string) (flavors string, at time.Time) {
	a.Helper()
	var status struct {
		Capacity struct {
			Flavors        json.RawMessage `json:"flavors"`
			LastUpdateTime time.Time       `json:"lastUpdateTime"`
		} `json:"capacity"`
	}
	if text, ok := a.Get("capacityproviders", types.NamespacedName{Name: name}).Fields["status"]; ok {
		if err := json.Unmarshal(text, &status); err != nil {
			a.Fatal(err)
		}
	}
	return string(status.Capacity.Flavors), status.Capacity.LastUpdateTime
}

// tells waits until the own provider says it of its flavor.
func (a *api) tells(resources string) {
	a.Helper()
	var got string
	err := patience.PollFor(a.Context(), 5*time.Millisecond, patience.Short, func(context.Context) (bool, error) {
		got, _ = a.says("own")
		return got == fmt.Sprintf(`[{"name":"a100","resources":%s}]`, resources), nil
	})
	if err != nil {
		a.Fatalf("Kueue is told %s, not %s; the requests were %q", got, resources, a.Requests())
	}
}

func TestKueueIsToldWhatIsUsable(t *testing.T) {
	a := newCluster(t)
	a.start()
	a.tells(`{"nvidia.com/gpu":"16"}`)
	if _, at := a.says("own"); time.Since(at).Abs() > time.Hour {
		t.Errorf("it was written at %s", at)
	}
	a.patch("nodes", "a", `{"spec": {"unschedulable": true}}`)
	a.tells(`{"nvidia.com/gpu":"8"}`)
	a.patch("nodes", "b", `{"status": {"allocatable": {"nvidia.com/gpu": "7"}}}`)
	a.tells(`{"nvidia.com/gpu":"7"}`)
	// Of what Kueue is not told, it takes the whole quota in the spec.
	a.Delete("nodes", types.NamespacedName{Name: "a"})
	a.Delete("nodes", types.NamespacedName{Name: "b"})
	a.tells(`{"nvidia.com/gpu":"0"}`)
	// What another hand wrote is corrected.
	a.patch("capacityproviders", "own", `{"status": {"capacity": {"flavors": [{"name": "a100", "resources": {"nvidia.com/gpu": "99"}}], "lastUpdateTime": "2026-10-01T18:08:09Z"}}}`)
	a.tells(`{"nvidia.com/gpu":"0"}`)
}

// What others fill is theirs, and what changes nothing is not written. What follows is the first write.
func TestOnlyWhatChangesIsWritten(t *testing.T) {
	a := newCluster(t)
	a.provider("others", "kueue.x-k8s.io/local-capacity")
	a.start()
	a.tells(`{"nvidia.com/gpu":"16"}`)
	for i := range 10 {
		a.patch("nodes", "a", fmt.Sprintf(`{"status": {"conditions": [{"type": "Ready", "status": "True", "lastHeartbeatTime": "2026-01-01T00:00:0%dZ"}]}}`, i))
	}
	a.provider("others", "kueue.x-k8s.io/local-capacity")
	a.patch("nodes", "a", `{"spec": {"unschedulable": true}}`)
	a.tells(`{"nvidia.com/gpu":"8"}`)
	a.patch("nodes", "a", `{"spec": {"unschedulable": null}}`)
	a.tells(`{"nvidia.com/gpu":"16"}`)
	written := slices.DeleteFunc(a.Requests(), func(request string) bool {
		return strings.HasPrefix(request, "GET ") || strings.HasSuffix(request, "reviews")
	})
	// A write from a cache that lags is refused, and made again.
	own := "PATCH /apis/kueue.x-k8s.io/v1alpha1/capacityproviders/own/status"
	if len(written) < 3 || !slices.Equal(slices.Compact(written), []string{own}) {
		t.Errorf("the requests are %q", written)
	}
	if said, _ := a.says("others"); said != "" {
		t.Errorf("of another controller's provider it says %s", said)
	}
}

// Kueue before 0.20 has no CapacityProviders.
func TestTheControllerRunsWithoutProviders(t *testing.T) {
	a := newAPI(t)
	a.start()
	if err := Setup(nil, nil, Settings{}); err != nil {
		t.Error(err)
	}
}
