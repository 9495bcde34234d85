// SPDX-License-Identifier: Apache-2.0

package appwrapper

import (
	"context"
	"slices"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllertest"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/internal/accessreview"
	"github.com/mlbatch/mlbatch/controller/internal/config"
	"github.com/mlbatch/mlbatch/controller/internal/lifecycle"
	"github.com/mlbatch/mlbatch/controller/internal/nodehealth"
	"github.com/mlbatch/mlbatch/test/given"
	"github.com/mlbatch/mlbatch/test/troubles"
)

// process is the controller from its start to its end: the real reconciler with its watches,
// and a replacement for controller-runtime.
type process struct {
	reconciler *Reconciler
	queue      *queue
	informers  informers
	// seen is the content of the caches; pending is what they have not received yet.
	seen    *apiServer
	pending []change
	// assured means that the last request, apart from creations, was a live read of the AppWrapper
	// or a save of it, and has shown that it is not suspended.
	assured bool
}

// change is a change of an object.
type change struct {
	before, after client.Object // nil before a creation, and after a removal
}

// object returns the changed object in its last version.
func (c change) object() client.Object {
	if c.after == nil {
		return c.before
	}
	return c.after
}

var theRequest = reconcile.Request{NamespacedName: client.ObjectKey{Namespace: given.Namespace, Name: "a"}}

func startProcess(api *apiServer, wire *troubles.Wire, told announcements, standby *Heard, migrationLimit int32, now func() time.Time) *process {
	counters, err := newMetrics(prometheus.NewRegistry())
	if err != nil {
		panic(err)
	}
	p := &process{seen: &apiServer{}, queue: &queue{now: now, limiter: retryBackoff()}, informers: informers{byKind: map[schema.GroupVersionKind]*controllertest.FakeInformer{}}}
	c := unreliable{apiServer: api, wire: wire, process: p}
	components := &watches{
		cache:  p.informers,
		mapper: c.RESTMapper(),
		allowed: func(ctx context.Context, verb string, resource schema.GroupVersionResource) (bool, error) {
			return accessreview.Self(ctx, c, "", verb, resource)
		},
		started: map[schema.GroupVersionKind]toolscache.ResourceEventHandlerRegistration{},
		queue:   p.queue,
		ended:   newLastStates(),
		over:    hasNothingDeployed(slimCache{p.seen}),
	}
	defaults := lifecycle.StandardDefaults()
	defaults.MigrationLimit = migrationLimit
	p.reconciler = &Reconciler{
		client: c, cached: slimCache{p.seen}, live: c, watch: components.watch, lastState: components.ended.get, heard: standby, dryRuns: newDryRuns(),
		evicted: notEvicted, reclaimed: notEvicted, says: saysNothing, waits: notWaiting, reserved: neverReserved, giveBack: notGivenBack, reassign: notReassigned, recorder: told, metrics: counters, rules: theRules, defaults: defaults, now: now, since: now(),
	}
	for _, object := range api.objects {
		p.pending = append(p.pending, change{nil, object})
	}
	p.catchUp(troubles.Never)
	return p
}

// announcements counts events by type, reason and action.
type announcements map[string]int

func (a announcements) Eventf(_, _ runtime.Object, eventType, reason, action, _ string, _ ...any) {
	a[eventType+" "+reason+" "+action]++
}

// theRules are the rules of the default configuration.
var theRules = config.Default().AppWrapper.NodeRules()

// catchUp updates the caches with pending changes. Relevant changes wake the controller. There
// are four caches, which can be stale independently.
func (p *process) catchUp(lags func(cached string) bool) (moved bool) {
	for _, what := range caches {
		if lags(what) {
			continue
		}
		cached := isCached[what]
		var others []change
		for _, c := range p.pending {
			if !cached(c.object()) {
				others = append(others, c)
				continue
			}
			p.seen.apply(c)
			p.hear(c)
			moved = true
		}
		p.pending = others
	}
	return moved
}

// The caches, by content.
var (
	caches   = []string{"appwrappers", "pods", "nodes", "components"}
	isCached = map[string]func(client.Object) bool{"appwrappers": isAppWrapper, "pods": isPod, "nodes": isNode, "components": isComponent}
)

func isAppWrapper(object client.Object) bool {
	_, is := object.(*v1beta2.AppWrapper)
	return is
}

func isPod(object client.Object) bool {
	return kindOf(object) == podKind
}

func isNode(object client.Object) bool {
	return kindOf(object) == nodeKind
}

func isComponent(object client.Object) bool {
	return !isAppWrapper(object) && !isPod(object) && !isNode(object)
}

// apply repeats a change of another API server.
func (s *apiServer) apply(c change) {
	if c.before != nil {
		i := slices.Index(s.objects, c.before)
		s.objects = slices.Delete(s.objects, i, i+1)
	}
	if c.after != nil {
		s.objects = append(s.objects, c.after)
	}
}

// hear plays the informers. The predicates of Setup decide which changes are relevant.
func (p *process) hear(c change) {
	if isPod(c.object()) {
		tellOfPods(p.reconciler.heard, c)
	}
	switch {
	case isAppWrapper(c.object()):
		if ours().Generic(event.GenericEvent{Object: c.object()}) {
			p.queue.Add(theRequest)
		}
	case isComponent(c.object()):
		p.informers.hear(c)
	case isPod(c.object()) && isRelevant(podChanged(), c):
		p.wake(wakeAppWrapperOfPod, c)
	case isNode(c.object()) && isRelevant(nodeChanged(theRules), c):
		p.wake(wakeAppWrappersOnNode(slimCache{p.seen}), c)
	}
}

// tellOfPods plays the watch of pods.
func tellOfPods(h *Heard, c change) {
	switch {
	case c.before == nil:
		h.handler().OnAdd(slim(c.after), false)
	case c.after == nil:
		h.handler().OnDelete(slim(c.before))
	default:
		h.handler().OnUpdate(slim(c.before), slim(c.after))
	}
}

func (p *process) wake(those handler.MapFunc, c change) {
	for _, request := range those(context.Background(), c.object()) {
		p.queue.Add(request)
	}
}

func isRelevant(changed predicate.Predicate, c change) bool {
	switch {
	case c.before == nil:
		return changed.Create(event.CreateEvent{Object: slim(c.after)})
	case c.after == nil:
		return changed.Delete(event.DeleteEvent{Object: slim(c.before)})
	}
	return changed.Update(event.UpdateEvent{ObjectOld: slim(c.before), ObjectNew: slim(c.after)})
}

// gpuRules are those of labels only, which concern pods with GPUs.
var gpuRules = nodehealth.Rules{Labels: theRules.Labels}

// slim returns what a cache keeps of a pod or a node.
func slim(object client.Object) client.Object { return slimBy(theRules, object) }

func slimBy(rules nodehealth.Rules, object client.Object) client.Object {
	transform := boundPods(newInterner(), rules)
	if isNode(object) {
		transform = slimNode(rules)
	}
	kept, err := transform(object)
	if err != nil {
		panic(err)
	}
	return kept.(client.Object)
}

// reconcile processes the request. It reports whether the process has died.
func (p *process) reconcile() (died bool) {
	defer func() {
		if reason := recover(); reason != nil {
			if _, died = reason.(troubles.Death); !died {
				panic(reason)
			}
		}
	}()
	p.queue.due, p.queue.at, p.assured = false, time.Time{}, false
	result, err := p.reconciler.Reconcile(log.IntoContext(context.Background(), logr.Discard()), theRequest)
	if err != nil {
		p.queue.AddRateLimited(theRequest)
		return false
	}
	p.queue.Forget(theRequest)
	if result.RequeueAfter > 0 {
		p.queue.AddAfter(theRequest, result.RequeueAfter)
	}
	return false
}

// queue holds at most one request, which is due now or at some time.
type queue struct {
	workqueue.TypedRateLimitingInterface[reconcile.Request]
	now     func() time.Time
	limiter workqueue.TypedRateLimiter[reconcile.Request]
	due     bool
	at      time.Time
}

func (q *queue) Add(reconcile.Request) {
	q.due = true
}

func (q *queue) AddAfter(_ reconcile.Request, wait time.Duration) {
	if at := q.now().Add(wait); q.at.IsZero() || at.Before(q.at) {
		q.at = at
	}
}

func (q *queue) AddRateLimited(request reconcile.Request) {
	q.AddAfter(request, q.limiter.When(request))
}

func (q *queue) Forget(request reconcile.Request) {
	q.limiter.Forget(request)
}

// ready reports whether the request is due now, or so soon that it counts as now.
func (q *queue) ready() bool {
	return q.due || !q.at.IsZero() && !q.at.After(q.now().Add(atOnce))
}

// slimCache reads what the caches keep.
type slimCache struct {
	*apiServer
}

func (c slimCache) Get(ctx context.Context, key client.ObjectKey, into client.Object, options ...client.GetOption) error {
	if err := c.apiServer.Get(ctx, key, into, options...); err != nil {
		return err
	}
	switch into := into.(type) {
	case *v1beta2.AppWrapper:
		_, err := newInterner().slimAppWrapper(into)
		return err
	case *unstructured.Unstructured:
		slim, err := newInterner().slimComponent(into)
		into.Object = slim.(*unstructured.Unstructured).Object
		return err
	case *corev1.Node:
		*into = *slim(into).(*corev1.Node)
	}
	return nil
}

func (c slimCache) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	if err := c.apiServer.List(ctx, list, options...); err != nil {
		return err
	}
	pods, ok := list.(*corev1.PodList)
	if !ok {
		return nil
	}
	for i := range pods.Items {
		pods.Items[i] = *slim(&pods.Items[i]).(*corev1.Pod)
	}
	return nil
}

// informers are those of components. They start when they are first requested.
type informers struct {
	cache.Informers // nil: only the methods here are used
	byKind          map[schema.GroupVersionKind]*controllertest.FakeInformer
}

// GetInformer implements a part of cache.Informers.
func (i informers) GetInformer(_ context.Context, object client.Object, _ ...cache.InformerGetOption) (cache.Informer, error) {
	kind := kindOf(object)
	if i.byKind[kind] == nil {
		i.byKind[kind] = controllertest.NewFakeInformer()
	}
	return i.byKind[kind], nil
}

func (i informers) hear(c change) {
	informer := i.byKind[kindOf(c.object())]
	switch {
	case informer == nil || !informer.HasSynced():
	case c.before == nil:
		informer.Add(c.after)
	case c.after == nil:
		informer.Delete(c.before)
	default:
		informer.Update(c.before, c.after)
	}
}

// begin gives the existing objects to informers that have just started.
func (i informers) begin(objects []client.Object) (moved bool) {
	for kind, informer := range i.byKind { // in any order: they only wake the controller
		if informer.HasSynced() {
			continue
		}
		for _, object := range objects {
			if kindOf(object) == kind {
				informer.Add(object)
			}
		}
		informer.Synced()
		moved = true
	}
	return moved
}
