// SPDX-License-Identifier: Apache-2.0

package cordon

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
)

// Setup adds the controller to mgr, if any node may be cordoned. Its only worker decides about all
// nodes, so that it cordons no more of them than it may.
func Setup(mgr ctrl.Manager, s Settings) error {
	if s.Nodes == 0 {
		return nil
	}
	counts := newCounts()
	if err := ctrlmetrics.Registry.Register(counts); err != nil {
		return fmt.Errorf("cannot register the metric of cordons: %w", err)
	}
	r := &reconciler{
		Settings: s, cached: mgr.GetCache(), live: mgr.GetAPIReader(), client: mgr.GetClient(),
		recorder: mgr.GetEventRecorder("appwrappers"), counts: counts, now: time.Now,
	}
	wake := handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: "all"}}}
	})
	err := ctrl.NewControllerManagedBy(mgr).Named("cordon").
		WithOptions(controller.Options{MaxConcurrentReconciles: 1}).
		Watches(&v1beta2.AppWrapper{}, wake, builder.WithPredicates(blames())).
		Watches(&corev1.Node{}, wake, builder.WithPredicates(cordons())).
		Complete(r)
	if err != nil {
		return fmt.Errorf("cannot make the controller of cordons: %w", err)
	}
	return nil
}

// blames passes an AppWrapper that blames other nodes than before.
func blames() predicate.Predicate {
	avoided := func(object client.Object) []v1beta2.AvoidedNode {
		if aw, ok := object.(*v1beta2.AppWrapper); ok {
			return aw.Status.AvoidedNodes
		}
		return nil
	}
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool { return len(avoided(e.Object)) > 0 },
		UpdateFunc: func(e event.UpdateEvent) bool { return !slices.Equal(avoided(e.ObjectOld), avoided(e.ObjectNew)) },
		DeleteFunc: func(event.DeleteEvent) bool { return false },
	}
}

// cordons passes a node that is cordoned or uncordoned: others may have waited for that.
func cordons() predicate.Predicate {
	type state struct{ cordoned, ours bool }
	of := func(object client.Object) state {
		_, ours := object.GetAnnotations()[v1beta2.CordonedAnnotation]
		node, ok := object.(*corev1.Node)
		return state{ok && node.Spec.Unschedulable, ours}
	}
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool { return of(e.Object).ours },
		UpdateFunc: func(e event.UpdateEvent) bool { return of(e.ObjectOld) != of(e.ObjectNew) },
		DeleteFunc: func(e event.DeleteEvent) bool { return of(e.Object).ours },
	}
}
