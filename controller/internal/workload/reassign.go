// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/internal/podtemplate"
	"github.com/mlbatch/mlbatch/controller/internal/reassignment"
)

// Reassign asks Kueue for other nodes for an AppWrapper. Before Workloads are watched, that is an error, so that it is
// tried again: Kueue is there, because it has assigned nodes.
func (e *Evictions) Reassign(ctx context.Context, aw types.UID, nodes []v1beta2.AvoidedNode) error {
	if _, known := e.known(); !known {
		return errors.New("cannot ask Kueue for other nodes: Workloads are not watched yet")
	}
	err := e.ask(ctx, aw, func(live *editor, key client.ObjectKey) error {
		return live.rewrite(ctx, key, func(w *unstructured.Unstructured) (bool, error) { return reassignment.Request(w, nodes) })
	})
	if err != nil {
		return fmt.Errorf("cannot ask Kueue for other nodes: %w", err)
	}
	return nil
}

// rewrite is edit for what is not status. It keeps fields that only a newer Kueue knows.
func (e *editor) rewrite(ctx context.Context, key client.ObjectKey, change func(*unstructured.Unstructured) (bool, error)) error {
	w := &unstructured.Unstructured{}
	w.SetGroupVersionKind(kueue.SchemeGroupVersion.WithKind("Workload"))
	if err := e.reader.Get(ctx, key, w); err != nil {
		return client.IgnoreNotFound(err)
	}
	before := w.DeepCopy()
	if changed, err := change(w); err != nil || !changed {
		return err
	}
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := e.client.Patch(ctx, w, patch, client.FieldOwner(reassignment.FieldOwner)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("cannot write Workload %s: %w", key, err)
	}
	return nil
}

// reassigner activates Workloads that were deactivated for other nodes. What to write decides package reassignment.
type reassigner struct {
	cached client.Reader
	live   *editor
	avoid  podtemplate.Avoidance
	now    func() time.Time
}

// Reconcile decides from the cache and, if there is something to write, again from what the API server has. A
// conflict needs no retry: what has changed the Workload triggers another look.
func (r *reassigner) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	w := &kueue.Workload{}
	if err := r.cached.Get(ctx, request.NamespacedName, w); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	now := r.now()
	next := reassignment.Next(w, now)
	if next.IsZero() {
		return ctrl.Result{}, nil
	}
	if next.After(now) {
		return ctrl.Result{RequeueAfter: next.Sub(now)}, nil
	}
	err := r.live.rewrite(ctx, request.NamespacedName, func(w *unstructured.Unstructured) (bool, error) {
		return reassignment.Proceed(w, r.avoid, now)
	})
	if err != nil && !apierrors.IsConflict(err) {
		return ctrl.Result{}, err
	}
	log.FromContext(ctx).V(1).Info("reassignment", "activated", reassignment.Taken(w), "conflict", err != nil)
	return ctrl.Result{}, nil
}

// controlReassignments starts the controller.
func controlReassignments(mgr ctrl.Manager, workloads cache.Cache, avoid podtemplate.Avoidance) error {
	return watch(mgr, "reassignment", workloads, leftNodes(), &reassigner{
		cached: workloads, live: &editor{reader: mgr.GetAPIReader(), client: mgr.GetClient()}, avoid: avoid, now: time.Now,
	})
}

// leftNodes ignores Workloads that never had to leave their nodes.
func leftNodes() predicate.Predicate {
	left := predicate.NewPredicateFuncs(func(object client.Object) bool {
		w, ok := object.(*kueue.Workload)
		return ok && reassignment.Slim(w) != nil
	})
	return predicate.And[client.Object](left, predicate.Funcs{DeleteFunc: func(event.DeleteEvent) bool { return false }})
}
