// SPDX-License-Identifier: Apache-2.0

// Package nodewatch makes controllers that count what nodes have. They share one cache, which keeps little of a node,
// so that heartbeats change nothing, and many changes at once are one look.
package nodewatch

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/mlbatch/mlbatch/controller/internal/nodehealth"
	"github.com/mlbatch/mlbatch/controller/internal/slackquota"
	"github.com/mlbatch/mlbatch/controller/internal/watchable"
)

// Settle is how long changes are collected, so that a rack that fails is one write.
const Settle = 300 * time.Millisecond

// cacheSyncTimeout is for a Kueue whose conversion webhook is down, as during its upgrade. The process would
// end when the time is over.
const cacheSyncTimeout = 365 * 24 * time.Hour

// Watch starts controllers, and has the cache that they read.
type Watch struct {
	mgr  ctrl.Manager
	seen func() (cache.Cache, error)
}

// New returns a Watch whose cache has what the rules read of nodes, and the ConfigMaps of a namespace. It is not that
// of the manager, which could not be made without Kueue, and has less of nodes.
func New(mgr ctrl.Manager, rules nodehealth.Rules, namespace string) *Watch {
	return &Watch{mgr: mgr, seen: sync.OnceValues(func() (cache.Cache, error) {
		seen, err := cache.New(mgr.GetConfig(), cache.Options{
			HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(), DefaultTransform: slackquota.Slim(rules),
			ByObject: map[client.Object]cache.ByObject{&corev1.ConfigMap{}: {Namespaces: map[string]cache.Config{namespace: {}}}},
		})
		if err != nil {
			return nil, fmt.Errorf("cannot make the cache of nodes: %w", err)
		}
		return seen, mgr.Add(seen)
	})}
}

// Controller looks again when a node, a ResourceFlavor or any object of the kinds that it watches has changed.
type Controller struct {
	Name string
	// Watched are more kinds.
	Watched []client.Object
	// Needed are the resources of those that may not be served yet.
	Needed []schema.GroupVersionResource
	// Settle is how long changes are collected.
	Settle time.Duration
	// Reads makes the reconciler.
	Reads func(client.Reader) reconcile.Reconciler
}

// Add has the manager run a controller once nodes, ResourceFlavors and what it needs can be watched.
func (w *Watch) Add(c Controller) error {
	var needed []watchable.Needed
	for _, resource := range append(c.Needed, corev1.SchemeGroupVersion.WithResource("nodes"), kueue.SchemeGroupVersion.WithResource("resourceflavors")) {
		needed = append(needed, watchable.Needed{GroupVersionResource: resource, Verbs: []string{"list", "watch"}})
	}
	return watchable.Then(w.mgr, c.Name, func() error { return w.start(c) }, needed...)
}

func (w *Watch) start(c Controller) error {
	seen, err := w.seen()
	if err != nil {
		return err
	}
	controlled := ctrl.NewControllerManagedBy(w.mgr).Named(c.Name).
		WithOptions(controller.Options{MaxConcurrentReconciles: 1, CacheSyncTimeout: cacheSyncTimeout})
	for _, kind := range append(c.Watched, &corev1.Node{}, &kueue.ResourceFlavor{}) {
		controlled = controlled.WatchesRawSource(source.Kind(seen, kind, wake(c.Settle)))
	}
	if err := controlled.Complete(c.Reads(seen)); err != nil {
		return fmt.Errorf("cannot make the controller %s: %w", c.Name, err)
	}
	return nil
}

// Read lists all nodes and flavors of a cache. They must not be changed.
func Read(ctx context.Context, cached client.Reader) ([]corev1.Node, []kueue.ResourceFlavor, error) {
	var nodes corev1.NodeList
	if err := cached.List(ctx, &nodes, client.UnsafeDisableDeepCopy); err != nil {
		return nil, nil, fmt.Errorf("cannot list nodes: %w", err)
	}
	var flavors kueue.ResourceFlavorList
	if err := cached.List(ctx, &flavors, client.UnsafeDisableDeepCopy); err != nil {
		return nil, nil, fmt.Errorf("cannot list ResourceFlavors: %w", err)
	}
	return nodes.Items, flavors.Items, nil
}

// WriteAll writes each, even if another fails, and returns when to look again. If one has changed meanwhile, that is
// after settle: its change may be none that wakes a controller. One that is gone needs no write.
func WriteAll[T any](all []T, settle time.Duration, write func(T) (again time.Duration, err error)) (ctrl.Result, error) {
	var failed error
	var result ctrl.Result
	for _, one := range all {
		again, err := write(one)
		if apierrors.IsConflict(err) {
			again, err = settle, nil
		}
		failed = errors.Join(failed, client.IgnoreNotFound(err))
		if again > 0 && (result.RequeueAfter == 0 || again < result.RequeueAfter) {
			result.RequeueAfter = again
		}
	}
	if failed != nil {
		return ctrl.Result{}, failed
	}
	return result, nil
}

// all is the one request: what one node lacks may concern everything.
var all = reconcile.Request{NamespacedName: types.NamespacedName{Name: "all"}}

// wake collects changes for a while.
func wake(settle time.Duration) handler.EventHandler {
	type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]
	return handler.Funcs{
		CreateFunc: func(_ context.Context, _ event.CreateEvent, q queue) { q.AddAfter(all, settle) },
		DeleteFunc: func(_ context.Context, _ event.DeleteEvent, q queue) { q.AddAfter(all, settle) },
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q queue) {
			if Changed(e.ObjectOld, e.ObjectNew) {
				q.AddAfter(all, settle)
			}
		},
	}
}

// Changed compares all but the version. Of objects that are reduced to what is read, heartbeats and counts change
// nothing.
func Changed(before, after client.Object) bool {
	if before.GetResourceVersion() == after.GetResourceVersion() {
		return false
	}
	same := after.DeepCopyObject().(client.Object)
	same.SetResourceVersion(before.GetResourceVersion())
	return !apiequality.Semantic.DeepEqual(before, same)
}
