// SPDX-License-Identifier: Apache-2.0

package appwrapper

import (
	"context"
	"errors"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache/informertest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllertest"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/internal/kinds"
	"github.com/mlbatch/mlbatch/test/given"
)

// watchWorld returns watches with informers that tests control.
func watchWorld(t *testing.T) (*watches, *informertest.FakeInformers, *meta.DefaultRESTMapper) {
	t.Helper()
	informers := &informertest.FakeInformers{Scheme: runtime.NewScheme()}
	mapper := meta.NewDefaultRESTMapper(nil)
	w := &watches{
		cache:   informers,
		mapper:  mapper,
		allowed: func(context.Context, string, schema.GroupVersionResource) (bool, error) { return true, nil },
		ended:   newLastStates(),
		over:    deployed,
		started: map[schema.GroupVersionKind]toolscache.ResourceEventHandlerRegistration{},
	}
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	t.Cleanup(queue.ShutDown)
	if err := w.Start(t.Context(), queue); err != nil {
		t.Fatal(err)
	}
	return w, informers, mapper
}

// deployed is what is known of an AppWrapper whose components are expected.
func deployed(types.NamespacedName) bool { return false }

func expectCoverage(t *testing.T, w *watches, gvk schema.GroupVersionKind, want coverage) {
	t.Helper()
	got, err := w.watch(t.Context(), kinds.For(gvk))
	if err != nil || got != want {
		t.Errorf("coverage of %s is %d, want %d, error %v", gvk.Kind, got, want, err)
	}
}

func TestAKindIsWatchedFromWhenItIsFirstWrapped(t *testing.T) {
	w, informers, mapper := watchWorld(t)
	expectCoverage(t, w, jobKind, uncovered) // its CRD is not installed yet
	mapper.Add(jobKind, meta.RESTScopeNamespace)
	informers.InformersByGVK = map[schema.GroupVersionKind]toolscache.SharedIndexInformer{jobKind: controllertest.NewFakeInformer()}
	expectCoverage(t, w, jobKind, beginning)
	expectCoverage(t, w, jobKind, beginning) // its informer has not synced
	informers.InformersByGVK[jobKind].(*controllertest.FakeInformer).Synced()
	expectCoverage(t, w, jobKind, covered)
}

func TestNoInformerIsStartedInVain(t *testing.T) {
	for name, tc := range map[string]struct {
		kind     schema.GroupVersionKind
		lacks    string
		coverage coverage
	}{
		"pods have a cache of their own":           {podKind, "", covered},
		"a kind that nobody knows or lists":        {configMapKind, "", uncovered},
		"a kind that the controller may not list":  {jobKind, "list", uncovered},
		"a kind that the controller may not watch": {jobKind, "watch", uncovered},
	} {
		t.Run(name, func(t *testing.T) {
			w, informers, mapper := watchWorld(t)
			mapper.Add(jobKind, meta.RESTScopeNamespace)
			w.allowed = func(_ context.Context, verb string, _ schema.GroupVersionResource) (bool, error) {
				return verb != tc.lacks, nil
			}
			expectCoverage(t, w, tc.kind, tc.coverage)
			if len(informers.InformersByGVK) > 0 {
				t.Error("an informer was started")
			}
		})
	}
}

// metadataInformers selects informers by the kind that an object names; the fake uses the Go
// type.
type metadataInformers struct{ *informertest.FakeInformers }

func (m metadataInformers) GetInformer(_ context.Context, object client.Object, _ ...cache.InformerGetOption) (cache.Informer, error) {
	return m.InformersByGVK[object.(*metav1.PartialObjectMetadata).GroupVersionKind()], nil
}

func TestKindsThatSayNothingOfTheirEndAreWatchedToo(t *testing.T) {
	deploymentKind := schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
	w, informers, mapper := watchWorld(t)
	w.cache = metadataInformers{informers}
	w.listed = map[schema.GroupVersionKind]bool{customKind: true}
	informers.InformersByGVK = map[schema.GroupVersionKind]toolscache.SharedIndexInformer{}
	for _, kind := range []schema.GroupVersionKind{deploymentKind, customKind} {
		mapper.Add(kind, meta.RESTScopeNamespace)
		informers.InformersByGVK[kind] = controllertest.NewFakeInformer()
		expectCoverage(t, w, kind, beginning)
		informers.InformersByGVK[kind].(*controllertest.FakeInformer).Synced()
		expectCoverage(t, w, kind, covered)
	}
	wake := wakeOwner(kinds.For(customKind), w.queue, deployed)
	component := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: given.Namespace, OwnerReferences: job("j", "a").GetOwnerReferences()}}
	if wake.OnAdd(component, false); w.queue.Len() != 0 {
		t.Error("a creation wakes the owner")
	}
	if wake.OnDelete(component); w.queue.Len() != 1 {
		t.Error("a removal does not wake the owner")
	}
}

func TestAReviewThatTakesLongKeepsNobodyElseWaiting(t *testing.T) {
	w, informers, mapper := watchWorld(t)
	mapper.Add(jobKind, meta.RESTScopeNamespace)
	informers.InformersByGVK = map[schema.GroupVersionKind]toolscache.SharedIndexInformer{jobKind: controllertest.NewFakeInformer()}
	nested := false
	w.allowed = func(context.Context, string, schema.GroupVersionResource) (bool, error) {
		if !nested {
			nested = true
			expectCoverage(t, w, jobKind, beginning) // another worker, in the meantime
		}
		return true, nil
	}
	expectCoverage(t, w, jobKind, beginning)
	if len(w.started) != 1 {
		t.Errorf("%d watches were begun", len(w.started))
	}
}

func TestAReviewThatFailsIsNoAnswer(t *testing.T) {
	w, _, mapper := watchWorld(t)
	mapper.Add(jobKind, meta.RESTScopeNamespace)
	away := errors.New("the API server is away")
	w.allowed = func(context.Context, string, schema.GroupVersionResource) (bool, error) { return false, away }
	if _, err := w.watch(t.Context(), kinds.For(jobKind)); !errors.Is(err, away) {
		t.Errorf("got %v", err)
	}
}

func TestComponentsWakeTheirAppWrapperWhenTheyEndOrGo(t *testing.T) {
	running, failed, going := job("j", "a"), job("j", "a"), job("j", "a")
	failed.Object["status"] = map[string]any{"conditions": []any{map[string]any{"type": "Failed", "status": "True"}}}
	now := metav1.Now()
	going.SetDeletionTimestamp(&now)
	kept := going.DeepCopy()
	kept.SetFinalizers([]string{"example.com/keep"})
	another := running.DeepCopy()
	another.SetUID("uid-of-another")
	for name, tc := range map[string]struct {
		happens func(toolscache.ResourceEventHandler)
		wakes   bool
	}{
		"one that appears running is no news":        {func(h toolscache.ResourceEventHandler) { h.OnAdd(running, false) }, false},
		"one that appears failed is":                 {func(h toolscache.ResourceEventHandler) { h.OnAdd(failed, true) }, true},
		"one that appears going is":                  {func(h toolscache.ResourceEventHandler) { h.OnAdd(going, true) }, true},
		"one that stays as it is is no news":         {func(h toolscache.ResourceEventHandler) { h.OnUpdate(running, running) }, false},
		"one that took the name of another is":       {func(h toolscache.ResourceEventHandler) { h.OnUpdate(running, another) }, true},
		"one that fails is":                          {func(h toolscache.ResourceEventHandler) { h.OnUpdate(running, failed) }, true},
		"one that begins to go is":                   {func(h toolscache.ResourceEventHandler) { h.OnUpdate(running, going) }, true},
		"one that is kept by fewer is":               {func(h toolscache.ResourceEventHandler) { h.OnUpdate(kept, going) }, true},
		"one that is gone is":                        {func(h toolscache.ResourceEventHandler) { h.OnDelete(running) }, true},
		"one whose end was missed is":                {func(h toolscache.ResourceEventHandler) { h.OnDelete(toolscache.DeletedFinalStateUnknown{Obj: running}) }, true},
		"one that belongs to nobody wakes nobody":    {func(h toolscache.ResourceEventHandler) { h.OnDelete(job("j", "")) }, false},
		"one of another controller wakes none of us": {func(h toolscache.ResourceEventHandler) { h.OnDelete(ownedBy("apps/v1", "Deployment")) }, false},
		"one of a namesake of ours wakes none":       {func(h toolscache.ResourceEventHandler) { h.OnDelete(ownedBy("example.com/v1", "AppWrapper")) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			w, _, _ := watchWorld(t)
			tc.happens(wakeOwner(kinds.For(jobKind), w.queue, deployed))
			if (w.queue.Len() == 1) != tc.wakes {
				t.Errorf("%d AppWrappers were woken", w.queue.Len())
			}
			if !tc.wakes {
				return
			}
			want := reconcile.Request{NamespacedName: client.ObjectKey{Namespace: given.Namespace, Name: "a"}}
			if got, _ := w.queue.Get(); got != want {
				t.Errorf("woke %v, want %v", got, want)
			}
		})
	}
}

func TestAComponentThatComesTooLateWakesItsAppWrapper(t *testing.T) {
	over := metav1.Condition{Type: string(v1beta2.ResourcesDeployed), Status: metav1.ConditionFalse}
	held := metav1.Condition{Type: string(v1beta2.ResourcesDeployed), Status: metav1.ConditionTrue}
	for sentence, tc := range map[string]struct {
		phase    v1beta2.AppWrapperPhase
		deployed metav1.Condition
		wakes    int
	}{
		"an AppWrapper waits":        {v1beta2.AppWrapperSuspended, over, 1},
		"it has failed":              {v1beta2.AppWrapperFailed, over, 1},
		"it is kept after it failed": {v1beta2.AppWrapperFailed, held, 0},
		"it begins":                  {v1beta2.AppWrapperResuming, held, 0},
		"it runs":                    {v1beta2.AppWrapperRunning, held, 0},
		"it is gone":                 {"", over, 0},
	} {
		t.Run(sentence, func(t *testing.T) {
			w, _, _ := watchWorld(t)
			cached := &apiServer{}
			if aw := given.AppWrapper("a").Build(); tc.phase != "" {
				aw.Status.Phase, aw.Status.Conditions = tc.phase, []metav1.Condition{tc.deployed}
				cached.objects = append(cached.objects, aw)
			}
			wakeOwner(kinds.For(jobKind), w.queue, hasNothingDeployed(cached)).OnAdd(job("j", "a"), false)
			if got := w.queue.Len(); got != tc.wakes {
				t.Errorf("%d AppWrappers were woken, want %d", got, tc.wakes)
			}
		})
	}
}

func ownedBy(apiVersion, kind string) *unstructured.Unstructured {
	object := job("j", "a")
	owners := object.GetOwnerReferences()
	owners[0].APIVersion, owners[0].Kind = apiVersion, kind
	object.SetOwnerReferences(owners)
	return object
}

// The garbage collector takes our ownership away if the AppWrapper is deleted with
// --cascade=orphan, perhaps just after the component was told to go.
func TestTheEndOfAnOrphanWakesWhoeverItsLabelNames(t *testing.T) {
	another := []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "CronJob", Name: "c", UID: "c", Controller: new(true)}}
	for sentence, tc := range map[string]struct {
		owners []metav1.OwnerReference
		wakes  int
	}{
		"one without an owner":           {nil, 1},
		"one that belongs to another":    {another, 0},
		"one that belongs to AppWrapper": {job("j", "a").GetOwnerReferences(), 1},
	} {
		t.Run(sentence, func(t *testing.T) {
			w, _, _ := watchWorld(t)
			orphan := job("j", "")
			orphan.SetOwnerReferences(tc.owners)
			orphan.SetLabels(map[string]string{v1beta2.AppWrapperLabel: "a"})
			wakeOwner(kinds.For(jobKind), w.queue, deployed).OnDelete(watched(t, orphan))
			if got := w.queue.Len(); got != tc.wakes {
				t.Errorf("it wakes %d, want %d", got, tc.wakes)
			}
		})
	}
}
