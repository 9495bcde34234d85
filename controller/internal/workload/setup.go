// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/mlbatch/mlbatch/controller/internal/deactivation"
	"github.com/mlbatch/mlbatch/controller/internal/jsonwatch"
	"github.com/mlbatch/mlbatch/controller/internal/podtemplate"
	"github.com/mlbatch/mlbatch/controller/internal/preemptionpause"
	"github.com/mlbatch/mlbatch/controller/internal/reassignment"
	"github.com/mlbatch/mlbatch/controller/internal/watchable"
	"github.com/mlbatch/mlbatch/controller/quotareason"
)

// concurrency is how many Workloads are worked on at the same time.
const concurrency = 4

// cacheSyncTimeout is for a Kueue whose conversion webhook is down, as during its upgrade. AppWrappers must
// not depend on it, and the process would end when the time is over.
const cacheSyncTimeout = 365 * 24 * time.Hour

// newCache has of Workloads what is read. It is not that of the manager, which could not be made
// without Kueue.
func newCache(mgr ctrl.Manager) (cache.Cache, error) {
	return jsonwatch.New(mgr.GetConfig(), cache.Options{
		HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(), DefaultTransform: slim,
	})
}

func slim(object any) (any, error) {
	if w, ok := object.(*kueue.Workload); ok {
		slim := preemptionpause.Slim(w)
		slim.Annotations = reassignment.Slim(w)
		slim.Finalizers = w.Finalizers
		if len(slim.OwnerReferences) == 0 && len(w.OwnerReferences) > 0 {
			slim.OwnerReferences = w.OwnerReferences[:1]
		}
		slim.Status.Conditions = append(slim.Status.Conditions, quotaOf(w)...)
		for _, kind := range []string{kueue.WorkloadDeactivationTarget, kueue.WorkloadRequeued} {
			if c := meta.FindStatusCondition(w.Status.Conditions, kind); c != nil {
				slim.Status.Conditions = append(slim.Status.Conditions, metav1.Condition{Type: c.Type, Status: c.Status, Reason: c.Reason})
			}
		}
		return slim, nil
	}
	return object, nil
}

// quotaOf is why a Workload waits for quota, or since when it has some.
func quotaOf(w *kueue.Workload) []metav1.Condition {
	if reason := quotareason.Of(w); reason != "" {
		return []metav1.Condition{{Type: kueue.WorkloadQuotaReserved, Status: metav1.ConditionFalse, Reason: string(reason)}}
	}
	c := meta.FindStatusCondition(w.Status.Conditions, kueue.WorkloadQuotaReserved)
	if c == nil || c.Status != metav1.ConditionTrue {
		return nil
	}
	return []metav1.Condition{{Type: c.Type, Status: c.Status, Reason: c.Reason, LastTransitionTime: c.LastTransitionTime}}
}

// Settings say what is written into Workloads.
type Settings struct {
	// Pause is that of work that is preempted again and again.
	Pause preemptionpause.Pause
	// Avoid has the labels of nodes that work keeps away from, once it had to leave assigned nodes.
	Avoid podtemplate.Avoidance
}

// Setup adds the controller of Workloads to mgr as soon as Kueue is installed, which may be after
// this controller has started, or never.
func Setup(mgr ctrl.Manager, s Settings, evictions *Evictions) error {
	return watchable.Then(mgr, "workload", func() error { return begin(mgr, s, evictions) },
		watchable.Needed{GroupVersionResource: kueue.SchemeGroupVersion.WithResource("workloads"), Verbs: []string{"get", "list", "watch"}})
}

// begin begins to watch Workloads, for evictions and for the controller.
func begin(mgr ctrl.Manager, s Settings, evictions *Evictions) error {
	workloads, err := newCache(mgr)
	if err != nil {
		return fmt.Errorf("cannot make the cache of Workloads: %w", err)
	}
	live := &editor{reader: mgr.GetAPIReader(), client: mgr.GetClient()}
	if err := evictions.follow(context.Background(), workloads, live); err != nil {
		return err
	}
	if err := mgr.Add(workloads); err != nil {
		return fmt.Errorf("cannot start the cache of Workloads: %w", err)
	}
	if err := mgr.Add(manager.RunnableFunc(evictions.catchUp)); err != nil {
		return fmt.Errorf("cannot wait for the cache of Workloads: %w", err)
	}
	if err := registerMost(ctrlmetrics.Registry, workloads); err != nil {
		return fmt.Errorf("cannot register metrics: %w", err)
	}
	if err := controlKept(mgr, workloads); err != nil {
		return err
	}
	if err := controlReassignments(mgr, workloads, s.Avoid); err != nil {
		return err
	}
	return control(mgr, workloads, s.Pause)
}

// control starts the controller. Without pauses, it still forgets what idle work was deactivated for.
func control(mgr ctrl.Manager, workloads cache.Cache, pause preemptionpause.Pause) error {
	pauses, err := newMetrics(ctrlmetrics.Registry)
	if err != nil {
		return fmt.Errorf("cannot register metrics: %w", err)
	}
	r := &Reconciler{
		cached: workloads, live: mgr.GetAPIReader(), client: mgr.GetClient(), recorder: mgr.GetEventRecorder("appwrappers"),
		pause: pause, pauses: pauses, now: time.Now,
	}
	return watch(mgr, "workload", workloads, changed(), r)
}

// watch starts a controller of Workloads, of those that matter to it.
func watch(mgr ctrl.Manager, name string, workloads cache.Cache, matter predicate.Predicate, r reconcile.Reconciler) error {
	err := ctrl.NewControllerManagedBy(mgr).Named(name).
		WatchesRawSource(source.Kind[client.Object](workloads, &kueue.Workload{}, &handler.EnqueueRequestForObject{}, matter)).
		WithOptions(controller.Options{MaxConcurrentReconciles: concurrency, CacheSyncTimeout: cacheSyncTimeout}).
		Complete(r)
	if err != nil {
		return fmt.Errorf("cannot make the controller %s of Workloads: %w", name, err)
	}
	return nil
}

// changed ignores Workloads that were never preempted, unless something is left of what Kueue was asked for.
func changed() predicate.Predicate {
	preempted := predicate.NewPredicateFuncs(func(object client.Object) bool {
		w, ok := object.(*kueue.Workload)
		return ok && (preemptionpause.Preemptions(w) > 0 || deactivation.Done(w))
	})
	return predicate.And[client.Object](preempted, predicate.Funcs{DeleteFunc: func(event.DeleteEvent) bool { return false }})
}
