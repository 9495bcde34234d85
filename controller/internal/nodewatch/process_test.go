// SPDX-License-Identifier: Apache-2.0

package nodewatch

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/mlbatch/mlbatch/controller/internal/nodehealth"
	"github.com/mlbatch/mlbatch/test/fakeapiserver"
	"github.com/mlbatch/mlbatch/test/patience"
)

// On a large cluster, a second watch of all nodes is a second copy of them.
func TestAllControllersShareOneWatchOfNodes(t *testing.T) {
	api := fakeapiserver.Start(kueue.SchemeGroupVersion.WithKind("ResourceFlavor"), corev1.SchemeGroupVersion.WithKind("Node"), corev1.SchemeGroupVersion.WithKind("ConfigMap"))
	t.Cleanup(api.Stop)
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{kueue.AddToScheme, authorizationv1.AddToScheme, corev1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	if err := api.Put([]byte(`{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "a"}, "spec": {}, "status": {}}`)); err != nil {
		t.Fatal(err)
	}
	var looks [2]atomic.Int32
	api.Manage(t, ctrl.Options{Scheme: scheme}, func(mgr ctrl.Manager) error {
		nodes, failed := New(mgr, nodehealth.Rules{}, "mlbatch-system"), error(nil)
		for i, name := range []string{"one", "two"} {
			failed = errors.Join(failed, nodes.Add(Controller{Name: name, Reads: func(cached client.Reader) reconcile.Reconciler {
				return reconcile.Func(func(ctx context.Context, _ ctrl.Request) (ctrl.Result, error) {
					found, _, err := Read(ctx, cached)
					looks[i].Add(int32(len(found)))
					return ctrl.Result{}, err
				})
			}}))
		}
		return failed
	})
	err := patience.PollFor(t.Context(), 5*time.Millisecond, patience.Short, func(context.Context) (bool, error) {
		return looks[0].Load() > 0 && looks[1].Load() > 0, nil
	})
	requests := api.Requests()
	requests = slices.DeleteFunc(requests, func(request string) bool { return !strings.HasPrefix(request, "GET /api/v1/nodes") })
	if err != nil || len(requests) != 1 {
		t.Errorf("%v; the requests are %q", err, requests)
	}
}

func TestWhenToLookAgain(t *testing.T) {
	queue := schema.GroupResource{Group: "kueue.x-k8s.io", Resource: "clusterqueues"}
	changed, gone := apierrors.NewConflict(queue, "a", errors.New("changed")), apierrors.NewNotFound(queue, "a")
	for what, row := range map[string]struct {
		writes []any
		want   time.Duration
		fails  bool
	}{
		"nothing is written":                       {},
		"all is well":                              {writes: []any{nil, nil}},
		"one has changed":                          {writes: []any{changed, nil}, want: time.Second},
		"one is gone":                              {writes: []any{nil, gone}},
		"one waits":                                {writes: []any{time.Minute, nil}, want: time.Minute},
		"two wait: the sooner counts":              {writes: []any{time.Minute, time.Hour}, want: time.Minute},
		"one waits, and another has changed":       {writes: []any{time.Minute, changed}, want: time.Second},
		"a failure is returned after all is tried": {writes: []any{errors.New("no right"), changed}, fails: true},
	} {
		tried := 0
		got, err := WriteAll(row.writes, time.Second, func(write any) (time.Duration, error) {
			tried++
			again, _ := write.(time.Duration)
			failed, _ := write.(error)
			return again, failed
		})
		if got.RequeueAfter != row.want || (err != nil) != row.fails || tried != len(row.writes) {
			t.Errorf("%s: %v, %v; %d were tried", what, got, err, tried)
		}
	}
}
