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
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/mlbatch/mlbatch/controller/admissionrules"
	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/internal/accessreview"
	"github.com/mlbatch/mlbatch/controller/internal/config"
	"github.com/mlbatch/mlbatch/controller/internal/lifecycle"
	"github.com/mlbatch/mlbatch/controller/internal/nodehealth"
	"github.com/mlbatch/mlbatch/controller/internal/podtemplate"
	"github.com/mlbatch/mlbatch/controller/quotareason"
)

// podsByAppWrapper indexes pods by the AppWrapper that their label names.
const podsByAppWrapper = "appwrapper"

// Evictions says which AppWrappers Kueue evicts and why others wait, and wakes them up when that changes.
// It also says since when Kueue reserves the quota of one, and asks Kueue to take it back.
type Evictions interface {
	source.Source
	Evicted(context.Context, types.UID) (bool, error)
	Reclaimed(context.Context, types.UID) (bool, error)
	Says(context.Context, types.UID) (quotareason.Word, error)
	Waits(context.Context, types.UID) (quotareason.Reason, error)
	ReservedSince(context.Context, types.UID) (time.Time, error)
	GiveBack(ctx context.Context, aw types.UID, why string) error
	Reassign(ctx context.Context, aw types.UID, nodes []v1beta2.AvoidedNode) error
}

// Activity tells, without a wait, whether devices of the running pods of the AppWrapper with this UID compute. It
// is nil if nobody can tell.
type Activity func(ctx context.Context, aw types.UID, namespace string, pods []string) lifecycle.Activity

// Setup adds the AppWrapper controller to mgr, whose caches must be made with
// CacheOptions.
func Setup(mgr ctrl.Manager, c config.Config, evictions Evictions, activity Activity, heard *Heard) error {
	if err := mgr.GetFieldIndexer().IndexField(context.Background(), &v1beta2.AppWrapper{}, appWrappersByAvoidance, avoidanceOfAppWrapper); err != nil {
		return fmt.Errorf("cannot index AppWrappers: %w", err)
	}
	counters, err := newMetrics(ctrlmetrics.Registry)
	if err != nil {
		return fmt.Errorf("cannot register metrics: %w", err)
	}
	if err := counters.namespaces.Forget(mgr, &v1beta2.AppWrapperList{}); err != nil {
		return err
	}
	r := &Reconciler{
		client:    mgr.GetClient(),
		cached:    mgr.GetCache(),
		live:      mgr.GetAPIReader(),
		recorder:  mgr.GetEventRecorder("appwrappers"),
		metrics:   counters,
		rules:     c.AppWrapper.NodeRules(),
		devices:   devicesOf(c.AppWrapper.Autopilot),
		defaults:  c.AppWrapper.Defaults(),
		allPods:   forAllPods(c.AppWrapper),
		evicted:   evictions.Evicted,
		reclaimed: evictions.Reclaimed,
		says:      evictions.Says,
		waits:     evictions.Waits,
		reserved:  evictions.ReservedSince,
		giveBack:  evictions.GiveBack,
		reassign:  evictions.Reassign,
		activity:  activity,
		heard:     heard,
		now:       time.Now,
		since:     time.Now(),
	}
	if c.WebhooksEnabled {
		r.dryRuns = newDryRuns()
	} else {
		r.problem = unadmitted(admissionrules.Limits{Components: c.AppWrapper.ComponentLimit, PodSets: c.AppWrapper.PodSetLimit})
	}
	components := newWatches(mgr, c.AppWrapper.ExtraKinds)
	r.watch, r.lastState = components.watch, components.ended.get
	return r.control(mgr, c, components, evictions)
}

// control starts the controller with everything that triggers it.
func (r *Reconciler) control(mgr ctrl.Manager, c config.Config, components *watches, evictions Evictions) error {
	forAppWrappers := ctrl.NewControllerManagedBy(mgr).
		For(&v1beta2.AppWrapper{}, builder.WithPredicates(ours())).
		Watches(&corev1.Pod{}, handler.EnqueueRequestsFromMapFunc(wakeAppWrapperOfPod), builder.WithPredicates(r.heard.beforeWaking(), podChanged())).
		WatchesRawSource(components).
		WatchesRawSource(evictions).
		WithOptions(controller.Options{MaxConcurrentReconciles: c.Concurrency, RateLimiter: retryBackoff()})
	if err := watchNodes(mgr, forAppWrappers, r.rules); err != nil {
		return err
	}
	if err := forAppWrappers.Complete(r); err != nil {
		return fmt.Errorf("cannot make the AppWrapper controller: %w", err)
	}
	return nil
}

// retryBackoff paces retries after an error, with backoff, up to once a minute.
func retryBackoff() workqueue.TypedRateLimiter[reconcile.Request] {
	return workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](20*time.Millisecond, time.Minute)
}

// forAllPods is what the configuration adds to every pod.
func forAllPods(c config.AppWrapper) podtemplate.Edit {
	return podtemplate.Edit{SchedulerName: c.SchedulerName, Avoid: c.Autopilot.Avoidance()}
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
		ended:  newLastStates(),
		over:   hasNothingDeployed(mgr.GetCache()),
		allowed: func(ctx context.Context, verb string, resource schema.GroupVersionResource) (bool, error) {
			return accessreview.Self(ctx, mgr.GetClient(), "", verb, resource)
		},
		started: map[schema.GroupVersionKind]toolscache.ResourceEventHandlerRegistration{},
	}
}

// ours ignores the AppWrappers that other controllers manage.
func ours() predicate.Predicate {
	return predicate.NewPredicateFuncs(func(object client.Object) bool {
		aw, ok := object.(*v1beta2.AppWrapper)
		return ok && aw.ManagedByThisController()
	})
}

// watchNodes makes a node that turns unhealthy trigger the AppWrappers that use it.
func watchNodes(mgr ctrl.Manager, forAppWrappers *builder.Builder, rules nodehealth.Rules) error {
	if len(rules.Resources()) == 0 {
		return nil
	}
	forAppWrappers.Watches(&corev1.Node{}, handler.EnqueueRequestsFromMapFunc(wakeAppWrappersOnNode(mgr.GetCache())),
		builder.WithPredicates(nodeChanged(rules)))
	return nil
}

// podChanged passes what a decision depends on in a pod: its phase, whether it has started, hangs, is idle
// or is being deleted, and its node if it may have to leave that. A new pod without a node is not relevant.
func podChanged() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool {
			pod, ok := e.Object.(*corev1.Pod)
			return ok && (pod.Status.Phase != corev1.PodPending || !pod.DeletionTimestamp.IsZero() || pod.Spec.NodeName != "" || pod.Status.StartTime != nil)
		},
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, ok := e.ObjectOld.(*corev1.Pod)
			after, also := e.ObjectNew.(*corev1.Pod)
			return ok && also && relevantOf(before) != relevantOf(after)
		},
		DeleteFunc: func(event.DeleteEvent) bool { return true },
	}
}

// podState is what a decision depends on in a pod.
type podState struct {
	phase             corev1.PodPhase
	node              string
	started, deleting bool
	notReadySince     int64
	idleSince         int64
	idleSeen          int64
	crashLoop         string
	runsSince         int64
	initSince         int64
}

func relevantOf(pod *corev1.Pod) podState {
	crashLoop, runsSince := crashLoopOf(pod)
	initSince, _ := initOf(pod)
	return podState{
		crashLoop: crashLoop, runsSince: runsSince.Unix(), initSince: initSince.Unix(),
		phase: pod.Status.Phase, node: pod.Spec.NodeName, started: pod.Status.StartTime != nil,
		deleting: !pod.DeletionTimestamp.IsZero(), notReadySince: notReadySince(pod).Unix(),
		idleSince: idleSince(pod).Unix(), idleSeen: idleSeen(pod).Unix(),
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
