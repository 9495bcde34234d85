// SPDX-License-Identifier: Apache-2.0

// Package workload carries out the pauses of work that is preempted again and again, in Kueue's
// Workloads, whatever their kind. What to do decides package preemptionpause. It also asks Kueue to take the quota of
// idle AppWrappers back, in the way that package deactivation knows.
package workload

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/mlbatch/mlbatch/controller/internal/deactivation"
	"github.com/mlbatch/mlbatch/controller/internal/preemptionpause"
)

// PausedReason is of the event at the begin of a pause.
const PausedReason = "PausedAfterPreemptions"

// Reconciler writes status.requeueState of Workloads.
type Reconciler struct {
	cached   client.Reader
	live     client.Reader
	client   client.Client
	recorder events.EventRecorder
	pause    preemptionpause.Pause
	pauses   *prometheus.CounterVec
	now      func() time.Time
}

// Reconcile decides from the cache and, if there is something to write, again from what the API
// server has. The write fails if the Workload has changed since, and the change triggers another.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	w := &kueue.Workload{}
	if err := r.cached.Get(ctx, request.NamespacedName, w); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if deactivation.Done(w) {
		return ctrl.Result{}, r.forget(ctx, request.NamespacedName)
	}
	now := r.now()
	d, err := r.decide(ctx, w, now)
	if err != nil {
		return ctrl.Result{}, err
	}
	if d.Action != preemptionpause.Nothing {
		if err := r.live.Get(ctx, request.NamespacedName, w); err != nil {
			return ctrl.Result{}, client.IgnoreNotFound(err)
		}
		if d, err = r.decide(ctx, w, now); err != nil {
			return ctrl.Result{}, err
		}
	}
	if err := r.write(ctx, w, d, now); err != nil {
		return ctrl.Result{}, err
	}
	if d.Look.IsZero() {
		return ctrl.Result{}, nil
	}
	return ctrl.Result{RequeueAfter: d.Look.Sub(now)}, nil
}

// forget removes what is left of a request that Kueue has carried out. A conflict needs no retry: what has
// changed the Workload triggers another look.
func (r *Reconciler) forget(ctx context.Context, key client.ObjectKey) error {
	live := editor{reader: r.live, client: r.client}
	if err := live.edit(ctx, key, deactivation.Forget); !apierrors.IsConflict(err) {
		return err
	}
	return nil
}

// decide lists Workloads only for one that was preempted so often that it waits for another. The
// cache is good enough: what preempts others has been there for a while, and no UID comes back.
func (r *Reconciler) decide(ctx context.Context, w *kueue.Workload, now time.Time) (preemptionpause.Decision, error) {
	var failed error
	d := r.pause.Decide(w, now, func(uid types.UID) bool {
		var all kueue.WorkloadList
		if failed = r.cached.List(ctx, &all, client.UnsafeDisableDeepCopy); failed != nil {
			return false
		}
		return slices.ContainsFunc(all.Items, func(other kueue.Workload) bool {
			return other.UID == uid && preemptionpause.Unfinished(&other)
		})
	})
	if failed != nil {
		return d, fmt.Errorf("cannot list Workloads: %w", failed)
	}
	return d, nil
}

func (r *Reconciler) write(ctx context.Context, w *kueue.Workload, d preemptionpause.Decision, now time.Time) error {
	if d.Action == preemptionpause.Nothing {
		return nil
	}
	before := w.DeepCopy()
	d.Apply(w, now)
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	err := r.client.Status().Patch(ctx, w, patch, client.FieldOwner(preemptionpause.FieldOwner))
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("cannot write the pause of Workload %s/%s: %w", w.Namespace, w.Name, err)
	}
	log.FromContext(ctx).V(1).Info("pause", "action", d.Action, "preemptions", preemptionpause.Preemptions(w), "until", d.Until)
	if d.Action == preemptionpause.Begin {
		r.pauses.WithLabelValues(untilOf(d)).Inc()
		// Several within minutes are a series, which has the message of the first.
		r.recorder.Eventf(w, nil, corev1.EventTypeNormal, PausedReason, "Pause",
			"Preempted again and again: status.requeueState.requeueAt says when it is queued again at the latest")
	}
	return nil
}
