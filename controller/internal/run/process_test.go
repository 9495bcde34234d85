// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/mlbatch/mlbatch/controller/api/codeflare/v1alpha1"
	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/runplan"
	"github.com/mlbatch/mlbatch/test/troubles"
)

func scheme(t testing.TB) *runtime.Scheme {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, authorizationv1.AddToScheme, v1beta2.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	return scheme
}

// process is the controller from its start to its end: the real reconciler, and a replacement for
// controller-runtime.
type process struct {
	life       *life
	reconciler *Reconciler
	caches     caches
	due        bool
	at         time.Time // of the next look, zero if there is none
	failures   int       // one after the other
}

func startProcess(l *life) *process {
	counters, err := newMetrics(prometheus.NewRegistry())
	l.must(err)
	p := &process{life: l, caches: caches{}, due: true}
	c := unreliable{l.api, l}
	p.reconciler = &Reconciler{
		client: c, cached: p.caches, live: c, recorder: announcements(l.told), metrics: counters,
		settings: runplan.DefaultSettings(), now: func() time.Time { return l.now }, recorded: true,
	}
	return p
}

// announcements counts events by reason.
type announcements map[string]int

func (a announcements) Eventf(_, _ runtime.Object, _, reason, _, _ string, _ ...any) {
	a[reason]++
}

func (p *process) ready() bool {
	return p.due || !p.at.IsZero() && !p.at.After(p.life.now)
}

// reconcile looks at the Run. It reports whether the process has died.
func (p *process) reconcile() (died bool) {
	defer func() {
		if reason := recover(); reason != nil {
			if _, died = reason.(troubles.Death); !died {
				panic(reason)
			}
		}
	}()
	p.due, p.at = false, time.Time{}
	result, err := p.reconciler.Reconcile(log.IntoContext(context.Background(), logr.Discard()), reconcile.Request{NamespacedName: theRun})
	wait := result.RequeueAfter
	if err != nil {
		p.failures++
		wait = 20 * time.Millisecond << p.failures
	} else {
		p.failures = 0
	}
	if wait > 0 {
		p.at = p.life.now.Add(wait)
	}
	return false
}

// caches hold what was last seen of each object; those of a kind can be stale independently of others.
type caches map[inCache]client.Object

type inCache struct{ kind, name string }

// cached are the objects of all stories.
var cached = []inCache{
	{"Run", theRun.Name},
	{"AppWrapper", theRun.Name}, {"AppWrapper", "digits-1-prepare"}, {"AppWrapper", "digits-1-train"}, {"AppWrapper", "digits-1-evaluate"}, {"AppWrapper", "digits-1-report"}, {"AppWrapper", "digits-1-step0"}, {"AppWrapper", "digits-1-step1"},
	{"Application", theApplication.Name}, {"Application", theProgram},
}

func (c inCache) make() client.Object {
	switch c.kind {
	case "Run":
		return &v1alpha1.Run{}
	case "AppWrapper":
		return &v1beta2.AppWrapper{}
	}
	return &v1alpha1.Application{}
}

// catchUp updates the caches, and wakes the controller if something has changed.
func (p *process) catchUp(lags func(cached string) bool) (moved bool) {
	for _, c := range cached {
		if lags(c.kind) {
			continue
		}
		now := c.make()
		if !p.life.find(client.ObjectKey{Namespace: theRun.Namespace, Name: c.name}, now) {
			now = nil
		}
		if !reflect.DeepEqual(now, p.caches[c]) {
			p.caches[c], p.due, moved = now, true, true
		}
	}
	return moved
}

// Get reads as the cache keeps it.
func (c caches) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	switch into := into.(type) {
	case *v1alpha1.Run:
		if run, ok := c[inCache{"Run", key.Name}].(*v1alpha1.Run); ok {
			run.DeepCopyInto(into)
			_, err := slimRun(into)
			return err
		}
	case *v1beta2.AppWrapper:
		if aw, ok := c[inCache{"AppWrapper", key.Name}].(*v1beta2.AppWrapper); ok && aw.Labels[v1alpha1.RunLabel] != "" {
			aw.DeepCopyInto(into)
			_, err := slimAppWrapper(into)
			return err
		}
	case *v1alpha1.Application:
		if app, ok := c[inCache{"Application", key.Name}].(*v1alpha1.Application); ok {
			app.DeepCopyInto(into)
			return nil
		}
	}
	return apierrors.NewNotFound(v1alpha1.GroupVersion.WithResource("x").GroupResource(), key.Name)
}

func (c caches) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	switch list := list.(type) {
	case *v1alpha1.RunSizeConfigurationList:
		list.Items = []v1alpha1.RunSizeConfiguration{runplan.DefaultSizes()}
	case *v1alpha1.ApplicationList:
		for _, object := range c {
			if app, ok := object.(*v1alpha1.Application); ok {
				list.Items = append(list.Items, *app)
			}
		}
	}
	return nil
}

// What can go wrong with a call.
var (
	reading   = []troubles.Manner{troubles.Fails}
	ascertain = []troubles.Manner{troubles.Fails, troubles.Outrun, cancelled, deleted}
	writing   = []troubles.Manner{troubles.Fails, troubles.Lost, troubles.Outrun, troubles.Dies, cancelled, deleted}
)

// unreliable is a client that uses the wire, and adds what the fake client lacks: UIDs, refusals
// and preconditions on UIDs.
type unreliable struct {
	client.WithWatch
	life *life
}

func (u unreliable) Get(ctx context.Context, key client.ObjectKey, into client.Object, options ...client.GetOption) error {
	kind := reflect.TypeOf(into).Elem().Name()
	return u.life.wire.Carry("get "+kind, ascertain, func() error { return u.WithWatch.Get(ctx, key, into, options...) })
}

func (u unreliable) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	return u.life.wire.Carry("list", reading, func() error { return u.WithWatch.List(ctx, list, options...) })
}

func (u unreliable) Create(ctx context.Context, object client.Object, options ...client.CreateOption) error {
	if review, ok := object.(*authorizationv1.SelfSubjectAccessReview); ok {
		return u.life.wire.Carry("review", reading, func() error {
			review.Status.Allowed = u.life.enabled
			return nil
		})
	}
	asked := (&client.CreateOptions{}).ApplyOptions(options)
	manners, name := writing, "create"
	if len(asked.DryRun) > 0 {
		manners, name = ascertain, "try"
	}
	return u.life.wire.Carry(name, manners, func() error { return u.life.create(ctx, object, len(asked.DryRun) > 0) })
}

func (l *life) create(ctx context.Context, object client.Object, dryRun bool) error {
	if l.refusal != nil {
		return l.refusal
	}
	if l.appWrapper(object.GetName()) != nil {
		return apierrors.NewAlreadyExists(v1beta2.GroupVersion.WithResource("appwrappers").GroupResource(), object.GetName())
	}
	if dryRun {
		return nil
	}
	l.made[object.GetName()]++
	if run := l.run(); run != nil && !meta.IsStatusConditionTrue(run.Status.Conditions, v1alpha1.Accepted) {
		l.broken("no AppWrapper without Accepted")
	}
	if l.made[object.GetName()] > 1 {
		l.broken("one AppWrapper is made for a Run or a step")
	}
	object.SetUID(types.UID("uid-of-" + object.GetName()))
	return l.api.Create(ctx, object)
}

func (u unreliable) Delete(ctx context.Context, object client.Object, options ...client.DeleteOption) error {
	asked := (&client.DeleteOptions{}).ApplyOptions(options)
	return u.life.wire.Carry("delete", writing, func() error {
		if !u.life.enabled {
			return apierrors.NewForbidden(v1beta2.GroupVersion.WithResource("x").GroupResource(), object.GetName(), errors.New("no right"))
		}
		if aw := u.life.appWrapper(object.GetName()); aw != nil && asked.Preconditions.UID != nil && *asked.Preconditions.UID != aw.UID && object.GetUID() != givenRun().UID {
			return apierrors.NewConflict(v1beta2.GroupVersion.WithResource("x").GroupResource(), object.GetName(), fmt.Errorf("the UID differs"))
		}
		return u.WithWatch.Delete(ctx, object, options...)
	})
}

func (u unreliable) Status() client.SubResourceWriter {
	return unreliableStatus{u.WithWatch.Status(), u.life}
}

type unreliableStatus struct {
	client.SubResourceWriter
	life *life
}

func (s unreliableStatus) Patch(ctx context.Context, object client.Object, patch client.Patch, options ...client.SubResourcePatchOption) error {
	return s.life.wire.Carry("patch status", writing, func() error { return s.SubResourceWriter.Patch(ctx, object, patch, options...) })
}
