// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
)

// lookAgain is how often a Workload is looked at that pods may still need.
const lookAgain = 15 * time.Second

const (
	// jobUIDLabel is how Kueue names the owner of a Workload beside its reference.
	jobUIDLabel = "kueue.x-k8s.io/job-uid"
	// podSetLabel names the pod set of a pod.
	podSetLabel = "kueue.x-k8s.io/podset"
)

// keeper ends Workloads whose owner cannot: those that were orphaned, and those that a foreground deletion removes
// before the owner. Both hold quota until the last pod is gone, and no longer.
//
//	kept      the webhook has given it our finalizer, and it is being deleted before its AppWrapper
//	orphaned  it has no owner any more, as with --cascade=orphan
type keeper struct {
	cached client.Reader
	live   *editor
}

// Reconcile looks at what the API server has: such Workloads are few, and to be wrong would be to run pods without
// quota.
func (k *keeper) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	w := &kueue.Workload{}
	if err := k.cached.Get(ctx, request.NamespacedName, w); err != nil || !kept(w) && !ownerless(w) {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if err := k.live.reader.Get(ctx, request.NamespacedName, w); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !kept(w) && !orphaned(w) {
		return ctrl.Result{}, nil
	}
	used, next, err := k.used(ctx, w)
	if err != nil || used {
		return ctrl.Result{RequeueAfter: next}, err
	}
	return ctrl.Result{}, k.end(ctx, w)
}

// kept: the webhook has given it our finalizer.
func kept(w *kueue.Workload) bool {
	return controllerutil.ContainsFinalizer(w, v1beta2.AppWrapperFinalizer)
}

// ownerless is orphaned as far as the cache knows, which has no labels.
func ownerless(w *kueue.Workload) bool {
	return len(w.OwnerReferences) == 0 && w.DeletionTimestamp.IsZero() && !meta.IsStatusConditionTrue(w.Status.Conditions, kueue.WorkloadFinished)
}

// orphaned: Kueue has made it for a job. One that it made for a job of another cluster never had an owner here.
func orphaned(w *kueue.Workload) bool {
	_, elsewhere := w.Labels[kueue.MultiKueueOriginLabel]
	return ownerless(w) && w.Labels[jobUIDLabel] != "" && !elsewhere
}

// used tells whether pods may need the quota, and when to look again if no event says so. As long as an AppWrapper has
// our finalizer, it has pods, or may get some.
func (k *keeper) used(ctx context.Context, w *kueue.Workload) (used bool, next time.Duration, err error) {
	name, uid := appWrapperOf(w)
	if name != "" {
		aw := &metav1.PartialObjectMetadata{}
		aw.SetGroupVersionKind(v1beta2.GroupVersion.WithKind(v1beta2.AppWrapperKind))
		err := k.live.reader.Get(ctx, client.ObjectKey{Namespace: w.Namespace, Name: name}, aw)
		if client.IgnoreNotFound(err) != nil {
			return false, 0, fmt.Errorf("cannot read AppWrapper %s: %w", name, err)
		}
		if err == nil && aw.UID == uid {
			return needs(aw, w)
		}
	}
	used, err = k.hasPods(ctx, w)
	return used, lookAgain, err
}

// needs tells whether an AppWrapper needs its Workload. When it lets go, an event says so, unless the Workload no
// longer names it.
func needs(aw *metav1.PartialObjectMetadata, w *kueue.Workload) (needed bool, next time.Duration, err error) {
	if len(w.OwnerReferences) == 0 {
		next = lookAgain
	}
	return aw.DeletionTimestamp.IsZero() || controllerutil.ContainsFinalizer(aw, v1beta2.AppWrapperFinalizer), next, nil
}

// appWrapperOf is whose Workload it is, or was: Kueue names pod sets by the AppWrapper and their number. Of other
// kinds the name may be anything.
func appWrapperOf(w *kueue.Workload) (name string, uid types.UID) {
	if owner := metav1.GetControllerOf(w); owner != nil {
		if owner.Kind != v1beta2.AppWrapperKind {
			return "", ""
		}
		return owner.Name, owner.UID
	}
	if len(w.Spec.PodSets) > 0 {
		if of, numbered := strings.CutSuffix(string(w.Spec.PodSets[0].Name), "-0"); numbered {
			name = of
		}
	}
	return name, types.UID(w.Labels[jobUIDLabel])
}

// hasPods tells whether a pod is left that has not ended. An AppWrapper is gone only after its pods. Those of other
// owners may outlive them.
func (k *keeper) hasPods(ctx context.Context, w *kueue.Workload) (bool, error) {
	var pods corev1.PodList
	if err := k.live.reader.List(ctx, &pods, client.InNamespace(w.Namespace)); err != nil {
		return false, fmt.Errorf("cannot list the pods of namespace %s: %w", w.Namespace, err)
	}
	return slices.ContainsFunc(pods.Items, func(p corev1.Pod) bool {
		ended := p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
		return !ended && isOf(&p, w)
	}), nil
}

// isOf: Kueue writes the name of the Workload onto its pods if it knows topologies, and else that of the pod set alone,
// which pods of others may have.
func isOf(p *corev1.Pod, w *kueue.Workload) bool {
	if name, named := p.Annotations[kueue.WorkloadAnnotation]; named {
		return name == w.Name
	}
	return slices.ContainsFunc(w.Spec.PodSets, func(s kueue.PodSet) bool { return string(s.Name) == p.Labels[podSetLabel] })
}

// end lets go of what is being deleted, and deletes what has no owner.
func (k *keeper) end(ctx context.Context, w *kueue.Workload) error {
	log.FromContext(ctx).Info("no pod is left: end the Workload", "orphaned", orphaned(w))
	if kept(w) {
		return ignoreConflict(k.live.rewrite(ctx, client.ObjectKeyFromObject(w), func(w *unstructured.Unstructured) (bool, error) {
			return controllerutil.RemoveFinalizer(w, v1beta2.AppWrapperFinalizer), nil
		}))
	}
	err := k.live.client.Delete(ctx, w, client.Preconditions{UID: ptr.To(w.UID), ResourceVersion: ptr.To(w.ResourceVersion)})
	if client.IgnoreNotFound(err) != nil {
		return ignoreConflict(fmt.Errorf("cannot delete Workload %s: %w", w.Name, err))
	}
	return nil
}

// ignoreConflict: what has changed the Workload triggers another look.
func ignoreConflict(err error) error {
	if apierrors.IsConflict(err) {
		return nil
	}
	return err
}

// controlKept starts the controller. It looks as soon as an AppWrapper lets go.
func controlKept(mgr ctrl.Manager, workloads cache.Cache) error {
	k := &keeper{cached: workloads, live: &editor{reader: mgr.GetAPIReader(), client: mgr.GetClient()}}
	err := ctrl.NewControllerManagedBy(mgr).Named("kept-workload").
		WatchesRawSource(source.Kind[client.Object](workloads, &kueue.Workload{}, &handler.EnqueueRequestForObject{}, notEnded())).
		Watches(&v1beta2.AppWrapper{}, handler.EnqueueRequestsFromMapFunc(k.of), builder.WithPredicates(letsGo())).
		WithOptions(controller.Options{MaxConcurrentReconciles: 1, CacheSyncTimeout: cacheSyncTimeout}).
		Complete(k)
	if err != nil {
		return fmt.Errorf("cannot make the controller of kept Workloads: %w", err)
	}
	return nil
}

// of are the Workloads of an AppWrapper that are kept.
func (k *keeper) of(ctx context.Context, aw client.Object) []reconcile.Request {
	var all kueue.WorkloadList
	if err := k.cached.List(ctx, &all, client.MatchingFields{byOwner: string(aw.GetUID())}, client.UnsafeDisableDeepCopy); err != nil {
		return nil // a look comes anyway
	}
	var requests []reconcile.Request
	for i := range all.Items {
		if kept(&all.Items[i]) {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&all.Items[i])})
		}
	}
	return requests
}

func notEnded() predicate.Predicate {
	matters := predicate.NewPredicateFuncs(func(object client.Object) bool {
		w, ok := object.(*kueue.Workload)
		return ok && (kept(w) || ownerless(w))
	})
	return predicate.And[client.Object](matters, predicate.Funcs{DeleteFunc: func(event.DeleteEvent) bool { return false }})
}

// letsGo: an AppWrapper that is deleted in the foreground has lost our finalizer, or is gone.
func letsGo() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc:  func(event.CreateEvent) bool { return false },
		GenericFunc: func(event.GenericEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			return controllerutil.ContainsFinalizer(e.ObjectOld, v1beta2.AppWrapperFinalizer) && !controllerutil.ContainsFinalizer(e.ObjectNew, v1beta2.AppWrapperFinalizer)
		},
	}
}
