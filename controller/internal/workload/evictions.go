// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/quotareason"
)

// byOwner indexes Workloads by the UID of the AppWrapper that controls them.
const byOwner = "appwrapper"

// Evictions says which AppWrappers Kueue evicts and why others wait, and wakes them up when that
// changes. Kueue may start an AppWrapper that it has just evicted, because its caches lag, and then
// return the quota before it sees that the AppWrapper runs. Until Workloads are watched, no AppWrapper
// counts as evicted or waits for a reason.
type Evictions struct {
	mu      sync.Mutex
	queue   workqueue.TypedRateLimitingInterface[reconcile.Request]
	cached  client.Reader
	watched toolscache.ResourceEventHandlerRegistration
	// live writes what returns quota; nil until Workloads are watched.
	live *editor
}

// Start makes Evictions a source of the AppWrapper controller.
func (e *Evictions) Start(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.queue = queue
	return nil
}

// follow begins to watch Workloads in a cache that has not started.
func (e *Evictions) follow(ctx context.Context, workloads cache.Cache, live *editor) error {
	if err := workloads.IndexField(ctx, &kueue.Workload{}, byOwner, ownerOf); err != nil {
		return fmt.Errorf("cannot index Workloads: %w", err)
	}
	informer, err := workloads.GetInformer(ctx, &kueue.Workload{}, cache.BlockUntilSynced(false))
	if err != nil {
		return fmt.Errorf("cannot watch Workloads: %w", err)
	}
	watched, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { e.wake(nil, object) },
		UpdateFunc: e.wake,
		DeleteFunc: func(object any) { e.wake(object, nil) },
	})
	if err != nil {
		return fmt.Errorf("cannot watch Workloads: %w", err)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.cached, e.watched, e.live = workloads, watched, live
	return nil
}

// catchUp wakes up those that were looked at before all Workloads were known, when the watch has just
// begun.
func (e *Evictions) catchUp(ctx context.Context) error {
	if !toolscache.WaitForCacheSync(ctx.Done(), e.watched.HasSynced) {
		return nil // the controller stops
	}
	var all kueue.WorkloadList
	if err := e.cached.List(ctx, &all, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("cannot list Workloads: %w", err)
	}
	for i := range all.Items {
		e.wake(nil, &all.Items[i])
	}
	return nil
}

// Evicted tells whether Kueue wants the quota of an AppWrapper back, as far as is known.
func (e *Evictions) Evicted(ctx context.Context, aw types.UID) (bool, error) {
	all, err := e.workloads(ctx, aw)
	for i := range all {
		if evicted(&all[i]) {
			return true, nil
		}
	}
	return false, err
}

// Reclaimed tells whether Kueue evicts an AppWrapper because others of its cohort want back what it has borrowed, as
// far as is known.
func (e *Evictions) Reclaimed(ctx context.Context, aw types.UID) (bool, error) {
	all, err := e.workloads(ctx, aw)
	return slices.ContainsFunc(all, func(w kueue.Workload) bool { return reclaimed(&w) }), err
}

func reclaimed(w *kueue.Workload) bool {
	c := meta.FindStatusCondition(w.Status.Conditions, kueue.WorkloadPreempted)
	return evicted(w) && c != nil && c.Status == metav1.ConditionTrue && slices.Contains(reclaims, c.Reason)
}

// reclaims are the reasons of preemptions for another queue of the cohort.
var reclaims = []string{kueue.InCohortReclamationReason, kueue.InCohortFairSharingReason, kueue.InCohortReclaimWhileBorrowingReason}

// Waits tells why Kueue does not give an AppWrapper quota, as far as is known.
func (e *Evictions) Waits(ctx context.Context, aw types.UID) (quotareason.Reason, error) {
	all, err := e.workloads(ctx, aw)
	for i := range all {
		if reason := quotareason.Of(&all[i]); reason != "" {
			return reason, nil
		}
	}
	return "", err
}

// ReservedSince is since when Kueue reserves the quota that an AppWrapper has, as far as is known. Kueue
// may have given it to the AppWrapper later.
func (e *Evictions) ReservedSince(ctx context.Context, aw types.UID) (time.Time, error) {
	all, err := e.workloads(ctx, aw)
	for i := range all {
		if c := meta.FindStatusCondition(all[i].Status.Conditions, kueue.WorkloadQuotaReserved); c != nil && c.Status == metav1.ConditionTrue {
			return c.LastTransitionTime.Time, nil
		}
	}
	return time.Time{}, err
}

// workloads are those of an AppWrapper, or none until Workloads are watched.
func (e *Evictions) workloads(ctx context.Context, aw types.UID) ([]kueue.Workload, error) {
	cached, known := e.known()
	if !known {
		return nil, nil
	}
	var all kueue.WorkloadList
	if err := cached.List(ctx, &all, client.MatchingFields{byOwner: string(aw)}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("cannot list Workloads: %w", err)
	}
	return all.Items, nil
}

// known has the cache of Workloads, once they are watched.
func (e *Evictions) known() (cached client.Reader, known bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.cached, e.watched != nil && e.watched.HasSynced()
}

// wake wakes up an AppWrapper if it is evicted now and was not, or the other way round, or if it waits
// for another reason.
func (e *Evictions) wake(before, after any) {
	was, is := evicted(before), evicted(after)
	why := waits(after)
	same := was == is && (why == "" || why == waits(before)) && deactivated(before) == deactivated(after)
	w, ok := after.(*kueue.Workload)
	if !ok {
		w, ok = before.(*kueue.Workload)
	}
	if same || !ok || len(ownerOf(w)) == 0 {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.queue != nil { // otherwise the controller has not started, and will look at every AppWrapper
		e.queue.Add(reconcile.Request{NamespacedName: types.NamespacedName{Namespace: w.Namespace, Name: metav1.GetControllerOf(w).Name}})
	}
}

func waits(object any) quotareason.Reason {
	w, ok := object.(*kueue.Workload)
	if !ok {
		return ""
	}
	return quotareason.Of(w)
}

// evicted: Kueue resets the condition when it admits the Workload again.
func evicted(object any) bool {
	w, ok := object.(*kueue.Workload)
	return ok && meta.IsStatusConditionTrue(w.Status.Conditions, kueue.WorkloadEvicted) &&
		!meta.IsStatusConditionTrue(w.Status.Conditions, kueue.WorkloadFinished)
}

func ownerOf(object client.Object) []string {
	owner := metav1.GetControllerOf(object)
	if owner == nil || owner.Kind != v1beta2.AppWrapperKind {
		return nil
	}
	return []string{string(owner.UID)}
}
