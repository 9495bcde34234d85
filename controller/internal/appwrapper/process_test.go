// SPDX-License-Identifier: Apache-2.0

package appwrapper

import (
	"context"
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
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/internal/lifecycle"
	"github.com/mlbatch/mlbatch/test/given"
)

// process is the controller from when it is started until it ends: the real reconciler
// with its watches, and around it what controller-runtime gives it.
type process struct {
	reconciler *Reconciler
	queue      *queue
	informers  informers
}

var theRequest = reconcile.Request{NamespacedName: client.ObjectKey{Namespace: given.Namespace, Name: "a"}}

func startProcess(api *apiServer, wire *wire, told announcements, now func() time.Time) *process {
	counters, err := newMetrics(prometheus.NewRegistry())
	if err != nil {
		panic(err)
	}
	c := unreliable{apiServer: api, wire: wire}
	p := &process{queue: &queue{now: now, limiter: patience()}, informers: informers{byKind: map[schema.GroupVersionKind]*controllertest.FakeInformer{}}}
	components := &watches{
		cache:  p.informers,
		mapper: c.RESTMapper(),
		allowed: func(ctx context.Context, verb string, resource schema.GroupVersionResource) (bool, error) {
			return selfReview(ctx, c, "", verb, resource)
		},
		started: map[schema.GroupVersionKind]toolscache.ResourceEventHandlerRegistration{},
		queue:   p.queue,
	}
	p.reconciler = &Reconciler{
		client: c, cached: slimCache{api}, live: c, watch: components.watch,
		recorder: told, metrics: counters, defaults: lifecycle.StandardDefaults(), now: now,
	}
	for _, object := range api.objects {
		p.hear(nil, object)
	}
	return p
}

// announcements count what users were told, by reason.
type announcements map[string]int

func (a announcements) Eventf(_, _ runtime.Object, _, reason, _, _ string, _ ...any) {
	a[reason]++
}

// hear is what informers do: the predicates of Setup decide what is news.
func (p *process) hear(before, after client.Object) {
	known := after
	if known == nil {
		known = before
	}
	switch kindOf(known) {
	case v1beta2.GroupVersion.WithKind(v1beta2.AppWrapperKind):
		if ours().Generic(event.GenericEvent{Object: known}) {
			p.queue.Add(theRequest)
		}
	case podKind:
		if isPodNews(before, after) {
			for _, request := range wakeAppWrapperOfPod(context.Background(), known) {
				p.queue.Add(request)
			}
		}
	default:
		p.informers.hear(before, after)
	}
}

func isPodNews(before, after client.Object) bool {
	switch {
	case before == nil:
		return podNews().Create(event.CreateEvent{Object: after})
	case after == nil:
		return podNews().Delete(event.DeleteEvent{Object: before})
	}
	return podNews().Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after})
}

// reconcile takes what is due. It tells whether the process has died of it.
func (p *process) reconcile() (died bool) {
	defer func() {
		if reason := recover(); reason != nil {
			if _, died = reason.(death); !died {
				panic(reason)
			}
		}
	}()
	p.queue.due, p.queue.at = false, time.Time{}
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

// queue holds one request: due, or due at some time, or not at all.
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

// ready: something is due now, or at once.
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
	if component, ok := into.(*unstructured.Unstructured); ok {
		_, err := slimComponent(component)
		return err
	}
	return nil
}

func (c slimCache) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	if err := c.apiServer.List(ctx, list, options...); err != nil {
		return err
	}
	pods := list.(*corev1.PodList)
	for i := range pods.Items {
		slim, err := slimPod(&pods.Items[i])
		if err != nil {
			return err
		}
		pods.Items[i] = *slim.(*corev1.Pod)
	}
	return nil
}

// informers are those of components, which begin when they are first asked for.
type informers struct {
	cache.Informers // nil: nobody asks for more than is here
	byKind          map[schema.GroupVersionKind]*controllertest.FakeInformer
}

// GetInformer makes informers a part of a cache.
func (i informers) GetInformer(_ context.Context, object client.Object, _ ...cache.InformerGetOption) (cache.Informer, error) {
	kind := kindOf(object)
	if i.byKind[kind] == nil {
		i.byKind[kind] = controllertest.NewFakeInformer()
	}
	return i.byKind[kind], nil
}

func (i informers) hear(before, after client.Object) {
	known := after
	if known == nil {
		known = before
	}
	informer := i.byKind[kindOf(known)]
	switch {
	case informer == nil || !informer.HasSynced():
	case before == nil:
		informer.Add(after)
	case after == nil:
		informer.Delete(before)
	default:
		informer.Update(before, after)
	}
}

// catchUp tells the informers that have begun what there is.
func (i informers) catchUp(objects []client.Object) (moved bool) {
	for kind, informer := range i.byKind { // in any order: all of them do no more than wake
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
