// SPDX-License-Identifier: Apache-2.0

// Package nodewatch makes controllers that count what nodes have. Their caches keep little of a node, so that
// heartbeats change nothing, and many changes at once are one look.
package nodewatch

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
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

// Then has mgr call begin once nodes, ResourceFlavors and these resources can be watched.
func Then(mgr ctrl.Manager, name string, begin func() error, more ...schema.GroupVersionResource) error {
	var needed []watchable.Needed
	for _, resource := range append(more, corev1.SchemeGroupVersion.WithResource("nodes"), kueue.SchemeGroupVersion.WithResource("resourceflavors")) {
		needed = append(needed, watchable.Needed{GroupVersionResource: resource, Verbs: []string{"list", "watch"}})
	}
	return watchable.Then(mgr, name, begin, needed...)
}

// NewCache makes a cache that has of nodes what is counted, and of other objects what more says. It is not that
// of the manager, which could not be made without Kueue, and has more of nodes.
func NewCache(mgr ctrl.Manager, rules nodehealth.Rules, more map[client.Object]cache.ByObject) (cache.Cache, error) {
	more[&corev1.Node{}] = cache.ByObject{Transform: func(object any) (any, error) {
		if node, ok := object.(*corev1.Node); ok {
			return slackquota.SlimNode(rules, node), nil
		}
		return object, nil
	}}
	return cache.New(mgr.GetConfig(), cache.Options{
		HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(),
		DefaultTransform: cache.TransformStripManagedFields(), ByObject: more,
	})
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

// Start adds a controller to mgr that looks again when a node, a flavor or any object of these kinds has changed, and
// the cache that it reads.
func Start(mgr ctrl.Manager, name string, seen cache.Cache, settle time.Duration, r reconcile.Reconciler, kinds ...client.Object) error {
	controlled := ctrl.NewControllerManagedBy(mgr).Named(name).
		WithOptions(controller.Options{MaxConcurrentReconciles: 1, CacheSyncTimeout: cacheSyncTimeout})
	for _, kind := range append(kinds, &corev1.Node{}, &kueue.ResourceFlavor{}) {
		controlled = controlled.WatchesRawSource(source.Kind(seen, kind, wake(settle)))
	}
	if err := controlled.Complete(r); err != nil {
		return fmt.Errorf("cannot make the controller %s: %w", name, err)
	}
	if err := mgr.Add(seen); err != nil {
		return fmt.Errorf("cannot start the cache of the controller %s: %w", name, err)
	}
	return nil
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
