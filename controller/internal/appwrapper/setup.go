// SPDX-License-Identifier: Apache-2.0

package appwrapper

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
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
	"github.com/mlbatch/mlbatch/controller/internal/config"
	"github.com/mlbatch/mlbatch/controller/internal/lifecycle"
	"github.com/mlbatch/mlbatch/controller/internal/podtemplate"
)

// podsByAppWrapper indexes pods by the AppWrapper that their label names.
const podsByAppWrapper = "appwrapper"

// Setup adds the AppWrapper controller to mgr, whose caches must be made with
// CacheOptions.
func Setup(mgr ctrl.Manager, c config.Config) error {
	if err := mgr.GetFieldIndexer().IndexField(context.Background(), &corev1.Pod{}, podsByAppWrapper, appWrapperOfPod); err != nil {
		return fmt.Errorf("cannot index pods: %w", err)
	}
	counters, err := newMetrics(ctrlmetrics.Registry)
	if err != nil {
		return fmt.Errorf("cannot register metrics: %w", err)
	}
	r := &Reconciler{
		client:   mgr.GetClient(),
		cached:   mgr.GetCache(),
		live:     mgr.GetAPIReader(),
		recorder: mgr.GetEventRecorder("appwrappers"),
		metrics:  counters,
		defaults: defaults(c.AppWrapper.FaultTolerance),
		allPods:  forAllPods(c.AppWrapper),
		now:      time.Now,
	}
	if !c.WebhooksEnabled {
		r.problem = unadmitted(c.AppWrapper.PodSetLimit)
	}
	components := newWatches(mgr, c.AppWrapper.ExtraKinds)
	r.watch = components.watch
	err = ctrl.NewControllerManagedBy(mgr).
		For(&v1beta2.AppWrapper{}, builder.WithPredicates(ours())).
		Watches(&corev1.Pod{}, handler.EnqueueRequestsFromMapFunc(wakeAppWrapperOfPod), builder.WithPredicates(podNews())).
		WatchesRawSource(components).
		WithOptions(controller.Options{MaxConcurrentReconciles: c.Concurrency, RateLimiter: patience()}).
		Complete(r)
	if err != nil {
		return fmt.Errorf("cannot make the AppWrapper controller: %w", err)
	}
	return nil
}

// patience paces the retries of what ended with an error.
func patience() workqueue.TypedRateLimiter[reconcile.Request] {
	return workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](20*time.Millisecond, time.Minute)
}

func defaults(f config.FaultTolerance) lifecycle.Defaults {
	return lifecycle.Defaults{
		AdmissionGrace:        f.AdmissionGracePeriod.Duration,
		WarmupGrace:           f.WarmupGracePeriod.Duration,
		FailureGrace:          f.FailureGracePeriod.Duration,
		RetryPause:            f.ResetPause.Duration,
		RetryLimit:            f.RetryLimit,
		ForcefulDeletionGrace: f.DeletionGracePeriod.Duration,
		GraceCeiling:          f.GracePeriodCeiling.Duration,
		SuccessTTLCeiling:     f.SuccessTTLCeiling.Duration,
	}
}

// forAllPods is what the administrator has all pods have.
func forAllPods(c config.AppWrapper) podtemplate.Edit {
	edit := podtemplate.Edit{SchedulerName: c.SchedulerName}
	if c.Autopilot.InjectAntiAffinities {
		edit.Avoid = podtemplate.Avoidance{Taints: c.Autopilot.ResourceTaints, Weight: c.Autopilot.PreferNoScheduleWeight}
	}
	return edit
}

func newWatches(mgr ctrl.Manager, extra []config.ExtraKind) *watches {
	listed := map[schema.GroupVersionKind]bool{}
	for _, kind := range extra {
		listed[kind.GVK()] = true
	}
	return &watches{
		cache:  mgr.GetCache(),
		mapper: mgr.GetRESTMapper(),
		listed: listed,
		allowed: func(ctx context.Context, verb string, resource schema.GroupVersionResource) (bool, error) {
			return selfReview(ctx, mgr.GetClient(), "", verb, resource)
		},
		started: map[schema.GroupVersionKind]toolscache.ResourceEventHandlerRegistration{},
	}
}

// ours leaves the AppWrappers of other controllers alone.
func ours() predicate.Predicate {
	return predicate.NewPredicateFuncs(func(object client.Object) bool {
		aw, ok := object.(*v1beta2.AppWrapper)
		return ok && aw.ManagedByThisController()
	})
}

// podNews is what a decision may depend on in a pod: its phase, and whether it is
// going. A pod that has only just appeared is expected.
func podNews() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool {
			pod, ok := e.Object.(*corev1.Pod)
			return ok && (pod.Status.Phase != corev1.PodPending || !pod.DeletionTimestamp.IsZero())
		},
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, ok := e.ObjectOld.(*corev1.Pod)
			after, also := e.ObjectNew.(*corev1.Pod)
			return ok && also && (before.Status.Phase != after.Status.Phase ||
				before.DeletionTimestamp.IsZero() != after.DeletionTimestamp.IsZero())
		},
		DeleteFunc: func(event.DeleteEvent) bool { return true },
	}
}

func appWrapperOfPod(object client.Object) []string {
	if name := object.GetLabels()[v1beta2.AppWrapperLabel]; name != "" {
		return []string{name}
	}
	return nil
}

func wakeAppWrapperOfPod(_ context.Context, pod client.Object) []reconcile.Request {
	var requests []reconcile.Request
	for _, name := range appWrapperOfPod(pod) {
		requests = append(requests, reconcile.Request{NamespacedName: types.NamespacedName{Namespace: pod.GetNamespace(), Name: name}})
	}
	return requests
}
