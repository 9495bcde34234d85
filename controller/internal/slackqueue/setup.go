// SPDX-License-Identifier: Apache-2.0

package slackqueue

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
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/mlbatch/mlbatch/controller/internal/slackquota"
	"github.com/mlbatch/mlbatch/controller/internal/watchable"
)

// cacheSyncTimeout is for a Kueue whose conversion webhook is down, as during its upgrade. The process would
// end when the time is over.
const cacheSyncTimeout = 365 * 24 * time.Hour

// Setup adds the controller to mgr as soon as Kueue is installed. Without slack queues it does nothing.
func Setup(mgr ctrl.Manager, s Settings) error {
	if len(s.Queues) == 0 {
		return nil
	}
	return setup(mgr, s, settle)
}

func setup(mgr ctrl.Manager, s Settings, settle time.Duration) error {
	needs := func(resource schema.GroupVersionResource) watchable.Needed {
		return watchable.Needed{GroupVersionResource: resource, Verbs: []string{"list", "watch"}}
	}
	return watchable.Then(mgr, "slackqueue", func() error { return begin(mgr, s, settle) },
		needs(kueue.SchemeGroupVersion.WithResource("clusterqueues")), needs(kueue.SchemeGroupVersion.WithResource("resourceflavors")),
		needs(corev1.SchemeGroupVersion.WithResource("nodes")))
}

func begin(mgr ctrl.Manager, s Settings, settle time.Duration) error {
	seen, err := newCache(mgr, s)
	if err != nil {
		return fmt.Errorf("cannot make the cache of slack queues: %w", err)
	}
	r := &reconciler{Settings: s, cached: seen, client: mgr.GetClient(), settle: settle, report: &report{}}
	if err := r.report.register(ctrlmetrics.Registry); err != nil {
		return fmt.Errorf("cannot register the metrics of flavors: %w", err)
	}
	controlled := ctrl.NewControllerManagedBy(mgr).Named("slackqueue").
		WithOptions(controller.Options{MaxConcurrentReconciles: 1, CacheSyncTimeout: cacheSyncTimeout})
	for _, kind := range []client.Object{&kueue.ClusterQueue{}, &kueue.ResourceFlavor{}, &corev1.Node{}, &corev1.ConfigMap{}} {
		controlled = controlled.WatchesRawSource(source.Kind(seen, kind, r.wake()))
	}
	if err := controlled.Complete(r); err != nil {
		return fmt.Errorf("cannot make the controller of slack queues: %w", err)
	}
	if err := mgr.Add(seen); err != nil {
		return fmt.Errorf("cannot start the cache of slack queues: %w", err)
	}
	return nil
}

// newCache has what is read. It is not that of the manager, which could not be made without Kueue,
// and has less of nodes.
func newCache(mgr ctrl.Manager, s Settings) (cache.Cache, error) {
	return cache.New(mgr.GetConfig(), cache.Options{
		HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(),
		DefaultTransform: cache.TransformStripManagedFields(),
		ByObject: map[client.Object]cache.ByObject{
			&corev1.Node{}:        {Transform: s.slimNode},
			&kueue.ClusterQueue{}: {Transform: slimQueue},
			&corev1.ConfigMap{}:   {Namespaces: map[string]cache.Config{s.Namespace: {}}, Transform: slimConfigMap},
		},
	})
}

func (s Settings) slimNode(object any) (any, error) {
	if node, ok := object.(*corev1.Node); ok {
		return slackquota.SlimNode(s.Rules, node), nil
	}
	return object, nil
}

func slimQueue(object any) (any, error) {
	if q, ok := object.(*kueue.ClusterQueue); ok {
		return slackquota.SlimQueue(q), nil
	}
	return object, nil
}

// slimConfigMap forgets what others store in the namespace.
func slimConfigMap(object any) (any, error) {
	if c, ok := object.(*corev1.ConfigMap); ok && c.Name != slackquota.DevicesName && c.Name != slackquota.DeclaredName {
		slim := &corev1.ConfigMap{}
		slim.Namespace, slim.Name, slim.ResourceVersion = c.Namespace, c.Name, c.ResourceVersion
		return slim, nil
	}
	return object, nil
}

// all is the one request: what one node lacks may concern every queue.
var all = reconcile.Request{NamespacedName: types.NamespacedName{Name: "all"}}

// wake collects changes for a while. Of objects that are reduced to what is read, heartbeats and
// counts change nothing.
func (r *reconciler) wake() handler.EventHandler {
	later := func(queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
		queue.AddAfter(all, r.settle)
	}
	type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]
	return handler.Funcs{
		CreateFunc: func(_ context.Context, _ event.CreateEvent, q queue) { later(q) },
		DeleteFunc: func(_ context.Context, _ event.DeleteEvent, q queue) { later(q) },
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q queue) {
			if changed(e.ObjectOld, e.ObjectNew) {
				later(q)
			}
		},
	}
}

// changed compares all but the version.
func changed(before, after client.Object) bool {
	if before.GetResourceVersion() == after.GetResourceVersion() {
		return false
	}
	same := after.DeepCopyObject().(client.Object)
	same.SetResourceVersion(before.GetResourceVersion())
	return !apiequality.Semantic.DeepEqual(before, same)
}
