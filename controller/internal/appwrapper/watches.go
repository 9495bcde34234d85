// SPDX-License-Identifier: Apache-2.0

package appwrapper

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/internal/kinds"
)

// watches trigger a reconcile when components change. A kind is watched once it is first
// wrapped: its CRD may be installed long after this controller has started, or never.
type watches struct {
	cache  cache.Informers
	mapper meta.RESTMapper
	// listed are the extraKinds of the configuration, which are watched as well.
	listed map[schema.GroupVersionKind]bool
	// over tells whether an AppWrapper has nothing deployed, so that a component that appears is a stray.
	over func(types.NamespacedName) bool
	// allowed tells whether the controller holds a right on a resource in all namespaces.
	allowed func(ctx context.Context, verb string, resource schema.GroupVersionResource) (bool, error)

	// ended has what the cache has no more.
	ended lastStates

	mu      sync.Mutex
	queue   workqueue.TypedRateLimitingInterface[reconcile.Request]
	started map[schema.GroupVersionKind]toolscache.ResourceEventHandlerRegistration
}

// coverage tells whether a kind has a cache and events.
type coverage int

const (
	// uncovered: no cache and no events; every read goes to the API server.
	uncovered coverage = iota
	// beginning: the watch has started and has not synced.
	beginning
	// covered: the cache has synced, and changes trigger a reconcile.
	covered
)

// watch starts to watch a kind if that is possible. It never waits.
func (w *watches) watch(ctx context.Context, kind kinds.Kind) (coverage, error) {
	if kind.GVK == podKind {
		return covered, nil
	}
	if !kind.Known() && !w.listed[kind.GVK] {
		return uncovered, nil
	}
	if c := w.begun(kind); c != uncovered {
		return c, nil
	}
	// Asked without the lock: one slow answer must not keep all workers waiting.
	possible, err := w.possible(ctx, kind)
	if err != nil || !possible {
		return uncovered, err
	}
	return beginning, w.begin(ctx, kind)
}

// begun is the coverage of a kind that is being watched.
func (w *watches) begun(kind kinds.Kind) coverage {
	w.mu.Lock()
	defer w.mu.Unlock()
	registration, ok := w.started[kind.GVK]
	switch {
	case !ok:
		return uncovered
	case registration.HasSynced():
		return covered
	}
	return beginning
}

// possible: the kind is served and the controller may list and watch it. Otherwise its
// informer would hang, and so would every read from it.
func (w *watches) possible(ctx context.Context, kind kinds.Kind) (bool, error) {
	mapping, err := w.mapper.RESTMapping(kind.GVK.GroupKind(), kind.GVK.Version)
	if meta.IsNoMatchError(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("cannot find the resource of kind %s: %w", kind.GVK.Kind, err)
	}
	for _, verb := range []string{"list", "watch"} {
		if allowed, err := w.allowed(ctx, verb, mapping.Resource); err != nil || !allowed {
			return false, err
		}
	}
	return true, nil
}

// Start makes watches a source of the controller, which starts its sources before
// it does anything else.
func (w *watches) Start(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.queue = queue
	return nil
}

func (w *watches) begin(ctx context.Context, kind kinds.Kind) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.started[kind.GVK] != nil {
		return nil // another worker was faster
	}
	informer, err := w.cache.GetInformer(ctx, objectOf(kind), cache.BlockUntilSynced(false))
	if err != nil {
		return fmt.Errorf("cannot watch %s: %w", kind.GVK.Kind, err)
	}
	registration, err := informer.AddEventHandler(w.ended.note(kind, wakeOwner(kind, w.queue, w.over)))
	if err != nil {
		return fmt.Errorf("cannot watch %s: %w", kind.GVK.Kind, err)
	}
	w.started[kind.GVK] = registration
	return nil
}

// wakeOwner queues the AppWrapper of a component that has ended or is being deleted. That a
// component runs is not relevant, and that one appears only if it comes after its attempt.
func wakeOwner(kind kinds.Kind, queue workqueue.TypedRateLimitingInterface[reconcile.Request], over func(types.NamespacedName) bool) toolscache.ResourceEventHandler {
	wakeIf := func(object any, relevant func(types.NamespacedName) bool) {
		if component, ok := removed(object); ok {
			if owner, ok := ownerOf(component); ok && relevant(owner) {
				queue.Add(reconcile.Request{NamespacedName: owner})
			}
		}
	}
	wake := func(object any) { wakeIf(object, func(types.NamespacedName) bool { return true }) }
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc: func(object any) {
			if component, ok := object.(client.Object); ok && stateOf(kind, component).relevant() {
				wake(object)
			} else {
				wakeIf(object, over)
			}
		},
		UpdateFunc: func(before, after any) {
			old, ok := before.(client.Object)
			component, also := after.(client.Object)
			if ok && also && (old.GetUID() != component.GetUID() || stateOf(kind, old) != stateOf(kind, component)) {
				wake(after)
			}
		},
		DeleteFunc: wake,
	}
}

// componentState is what a decision depends on in a component.
type componentState struct {
	verdict     kinds.Verdict
	terminating bool
	// givenUp are pods without which it goes on: one that has failed does not have to be replaced.
	givenUp int
	// held names the finalizers of a terminating component.
	held string
}

// relevant: it differs from a component that runs.
func (s componentState) relevant() bool {
	return s.terminating || ended(s.verdict)
}

func stateOf(kind kinds.Kind, component client.Object) componentState {
	said := reportOf(kind, component)
	s := componentState{verdict: said.verdict, givenUp: said.ended.GivenUp, terminating: !component.GetDeletionTimestamp().IsZero()}
	if s.terminating {
		s.held = strings.Join(component.GetFinalizers(), ",")
	}
	return s
}

// ownerOf goes by the label of an orphan: its AppWrapper may be removing it.
func ownerOf(component client.Object) (types.NamespacedName, bool) {
	owner := controllingAppWrapper(component)
	if name := component.GetLabels()[v1beta2.AppWrapperLabel]; name != "" && metav1.GetControllerOfNoCopy(component) == nil {
		owner = &metav1.OwnerReference{Name: name}
	}
	if owner == nil {
		return types.NamespacedName{}, false
	}
	return types.NamespacedName{Namespace: component.GetNamespace(), Name: owner.Name}, true
}

// controllingAppWrapper is nil where an object is controlled by nobody or something else.
func controllingAppWrapper(component client.Object) *metav1.OwnerReference {
	owner := metav1.GetControllerOfNoCopy(component)
	if owner == nil || owner.Kind != v1beta2.AppWrapperKind || owner.APIVersion != v1beta2.GroupVersion.String() {
		return nil
	}
	return owner
}
