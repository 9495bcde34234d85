// SPDX-License-Identifier: Apache-2.0

package appwrapper

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/internal/kinds"
	"github.com/mlbatch/mlbatch/test/given"
)

// runningWorld has an AppWrapper "a" of one Job "j" whose only pod runs.
func runningWorld(t *testing.T) *world {
	t.Helper()
	w := newWorld(t, given.AppWrapper("a").With(given.Job("j", 1)).Unsuspended().Build())
	w.settle()
	w.add(pod("j-1", corev1.PodRunning))
	w.settle()
	w.expectPhase(v1beta2.AppWrapperRunning)
	return w
}

func TestAHealthyRunningAppWrapperCausesNoRequest(t *testing.T) {
	w := runningWorld(t)
	w.writes, w.liveReads = nil, nil
	for range 10 {
		w.now = w.now.Add(time.Hour)
		if result := w.reconcile(); result != (reconcile.Result{}) {
			t.Errorf("it requeues: %v", result)
		}
	}
	if len(w.writes)+len(w.liveReads) > 0 {
		t.Errorf("writes %q, live reads %q", w.writes, w.liveReads)
	}
}

// Without an index, the cache would go through all pods.
func TestPodsAreFoundByAnIndex(t *testing.T) {
	w := runningWorld(t)
	w.reconciler.cached = interceptor.NewClient(w.api, interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			var wanted client.ListOptions
			if wanted.ApplyOptions(options); wanted.FieldSelector == nil {
				t.Error("the cache is searched")
			}
			return c.List(ctx, list, options...)
		},
	})
	w.reconcile()
}

// readsOfALife are the reads that no cache can answer, in the order of docs/architecture.md.
var readsOfALife = []string{
	"list",  // it has succeeded, and no pod is left that needs quota
	"get j", // nothing is left
}

func TestALifeCostsFiveWritesAndOneCreateAndItsEndTwo(t *testing.T) {
	w := runningWorld(t)
	w.setJobCondition("j", "Complete")
	w.setPodPhase("j-1", corev1.PodSucceeded)
	w.settle()
	w.expectPhase(v1beta2.AppWrapperSucceeded)
	const status = "patch status of a"
	want := []string{"patch a", status, "create j", status, status, status}
	if diff := cmp.Diff(want, w.writes); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	w.writes = nil
	if err := errors.Join(w.api.Delete(t.Context(), pod("j-1", "")), w.api.Delete(t.Context(), w.get())); err != nil {
		t.Fatal(err)
	}
	w.now = w.get().DeletionTimestamp.Time
	w.settle()
	if diff := cmp.Diff(readsOfALife, w.liveReads); diff != "" {
		t.Errorf("live reads (-want +got)\n%s", diff)
	}
	if diff := cmp.Diff([]string{"delete j", "patch a"}, w.writes); diff != "" || w.exists(v1beta2.GroupVersion.WithKind(v1beta2.AppWrapperKind), "a") {
		t.Errorf("until it is gone (-want +got)\n%s", diff)
	}
}

// The API server would ignore the rest, which is large.
func TestASaveSendsTheStatusAlone(t *testing.T) {
	w := newWorld(t, given.AppWrapper("a").With(given.Job("j", 1)).Unsuspended().Build())
	var sent []string
	w.reconciler.client = interceptor.NewClient(w.api, interceptor.Funcs{
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, object client.Object, patch client.Patch, options ...client.SubResourcePatchOption) error {
			body, err := patch.Data(object)
			if err != nil {
				return err
			}
			fields := map[string]any{}
			if err := json.Unmarshal(body, &fields); err != nil {
				return err
			}
			sent = slices.AppendSeq(sent, maps.Keys(fields))
			return c.SubResource(sub).Patch(ctx, object, patch, options...)
		},
	})
	w.reconcile()
	slices.Sort(sent)
	if sent = slices.Compact(sent); !slices.Equal(sent, []string{"metadata", "status"}) {
		t.Errorf("sends %v", sent)
	}
}

// The API server would return the templates in every answer, and the controller needs them once,
// to create the components.
func TestOnlyTheAnswerThatBeginsAnAttemptBringsTheAppWrapperBack(t *testing.T) {
	w := newWorld(t, given.AppWrapper("a").With(given.Job("j", 1)).Unsuspended().Build())
	saves, others, whole := 0, 0, 0
	count := func(object client.Object, writes *int) {
		*writes++
		if _, metadata := object.(*metav1.PartialObjectMetadata); !metadata {
			whole++
		}
	}
	w.reconciler.client = interceptor.NewClient(w.api, interceptor.Funcs{
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, object client.Object, patch client.Patch, options ...client.SubResourcePatchOption) error {
			count(object, &saves)
			return c.SubResource(sub).Patch(ctx, object, patch, options...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, options ...client.PatchOption) error {
			count(object, &others)
			return c.Patch(ctx, object, patch, options...)
		},
	})
	w.settle()
	w.delete()
	for range 2 {
		w.reconcile()
	}
	if saves != 3 || others != 2 || whole != 1 {
		t.Errorf("%d saves and %d changes of the finalizer, of which %d bring it back", saves, others, whole)
	}
}

func TestAnAppWrapperOfAnotherControllerIsLeftAlone(t *testing.T) {
	for sentence, tc := range map[string]struct {
		controller string
		deleted    bool
		heeded     bool
	}{
		"one of MultiKueue's is left alone":        {controller: "kueue.x-k8s.io/multikueue"},
		"also when it is deleted":                  {controller: "kueue.x-k8s.io/multikueue", deleted: true},
		"one that names us is ours":                {controller: v1beta2.AppWrapperControllerName, heeded: true},
		"one that names us is ours to let go, too": {controller: v1beta2.AppWrapperControllerName, deleted: true, heeded: true},
	} {
		t.Run(sentence, func(t *testing.T) {
			w := newWorld(t, given.AppWrapper("a").With(given.Job("j", 1)).Unsuspended().WithFinalizer().ManagedBy(tc.controller).Build())
			if tc.deleted {
				if err := w.api.Delete(t.Context(), w.get()); err != nil {
					t.Fatal(err)
				}
			}
			w.reconcile()
			if (len(w.writes) > 0) != tc.heeded {
				t.Errorf("writes %q", w.writes)
			}
		})
	}
}

func TestNothingIsDeployedOnQuotaThatHasBeenTakenBack(t *testing.T) {
	for name, tc := range map[string]struct {
		diesAt int
		phase  v1beta2.AppWrapperPhase
	}{
		"before it was seen to be unsuspended": {2, v1beta2.AppWrapperEmpty},
		"while the components are created":     {3, v1beta2.AppWrapperResuming},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, given.AppWrapper("a").With(given.Job("j", 1)).Unsuspended().Build())
			w.dieAt(tc.diesAt)
			w.expectPhase(tc.phase)
			w.reconciler.cached = frozen{w.api, w.get()}
			w.change(func(aw *v1beta2.AppWrapper) { aw.Spec.Suspend = true })
			w.reconcile()
			w.expectPhase(tc.phase)
			if w.exists(jobKind, "j") {
				t.Error("the Job was created without quota")
			}
		})
	}
}

// Before anyone has written the status, Kueue knows only the pod sets that it finds by itself.
func TestNothingIsDeployedOnAShareOfItsQuota(t *testing.T) {
	w := newWorld(t, given.AppWrapper("a").With(given.Job("j", 1), given.Job("k", 1)).Unsuspended().Build())
	admit := func(components int) func(*v1beta2.AppWrapper) {
		return func(aw *v1beta2.AppWrapper) {
			for i := range components {
				aw.Spec.Components[i].PodSetInfos = []v1beta2.AppWrapperPodSetInfo{{}}
			}
		}
	}
	w.change(admit(1))
	w.settle()
	w.expectPhase(v1beta2.AppWrapperSuspended)
	if w.exists(jobKind, "j") {
		t.Error("the component that has quota was created without the other")
	}
	w.change(admit(2))
	w.settle()
	w.expectPhase(v1beta2.AppWrapperRunning)
}

// frozen is a cache that no longer receives changes of an AppWrapper.
type frozen struct {
	client.Reader
	aw *v1beta2.AppWrapper
}

func (f frozen) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	if aw, ok := object.(*v1beta2.AppWrapper); ok {
		f.aw.DeepCopyInto(aw)
		return nil
	}
	return f.Reader.Get(ctx, key, object, options...)
}

func TestAComponentThatOnlyTheCacheMissesIsNotMissing(t *testing.T) {
	w := runningWorld(t)
	w.reconciler.cached = without(w.api, "j")
	w.reconcile()
	w.expectPhase(v1beta2.AppWrapperRunning)
	if err := w.api.Delete(t.Context(), job("j", "")); err != nil {
		t.Fatal(err)
	}
	w.reconcile()
	w.expectPhase(v1beta2.AppWrapperFailed)
}

// A cache that went back in time has the component of the previous attempt, which is being
// deleted.
func TestAComponentThatOnlyTheCacheSeesGoingIsNotMissing(t *testing.T) {
	w := runningWorld(t)
	going := job("j", "a")
	going.SetDeletionTimestamp(&metav1.Time{Time: w.now})
	w.reconciler.cached = outdated(w, going)
	w.reconcile()
	w.expectPhase(v1beta2.AppWrapperRunning)
	w.changeJob("j", func(job *unstructured.Unstructured) { job.SetFinalizers([]string{"example.com/keep"}) })
	if err := w.api.Delete(t.Context(), job("j", "")); err != nil {
		t.Fatal(err)
	}
	w.reconcile()
	w.expectPhase(v1beta2.AppWrapperFailed)
}

func TestQuotaIsNotGivenBackWhileOnlyTheCacheMissesThePods(t *testing.T) {
	w := runningWorld(t)
	w.reconciler.cached = interceptor.NewClient(w.api, interceptor.Funcs{
		List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error { return nil },
	})
	w.change(func(aw *v1beta2.AppWrapper) { aw.Spec.Suspend = true })
	w.settle()
	w.expectPhase(v1beta2.AppWrapperSuspending)
	if err := w.api.Delete(t.Context(), pod("j-1", "")); err != nil {
		t.Fatal(err)
	}
	w.settle()
	w.expectPhase(v1beta2.AppWrapperSuspended)
}

// What finalizers keep is the last to go.
func TestNoAttemptBeginsWhileOnlyTheCacheMissesAPodOfTheLast(t *testing.T) {
	aw := given.AppWrapper("a").With(given.Job("j", 1), given.ConfigMap("c")).Unsuspended().Build()
	aw.Annotations = map[string]string{v1beta2.RetryPausePeriodDurationAnnotation: "0s"}
	w := newWorld(t, aw)
	w.settle()
	ended := pod("j-1", corev1.PodFailed)
	ended.Finalizers = []string{"example.com/held"}
	w.add(ended)
	w.hold("c", "example.com/held")
	w.setJobCondition("j", "Failed")
	if err := w.api.Delete(t.Context(), ended); err != nil {
		t.Fatal(err)
	}
	w.settle()
	w.expectPhase(v1beta2.AppWrapperResetting)
	w.reconciler.cached = interceptor.NewClient(w.api, interceptor.Funcs{
		List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error { return nil },
	})
	w.hold("c")
	w.settle()
	w.expectPhase(v1beta2.AppWrapperResetting)
	w.reconciler.cached = w.api
	ended.Finalizers = nil
	if err := w.api.Patch(t.Context(), ended, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))); err != nil {
		t.Fatal(err)
	}
	w.settle()
	w.expectPhase(v1beta2.AppWrapperRunning)
}

// hold gives the ConfigMap these finalizers and no others.
func (w *world) hold(name string, finalizers ...string) {
	w.Helper()
	held := &unstructured.Unstructured{}
	held.SetGroupVersionKind(configMapKind)
	if err := w.api.Get(w.Context(), client.ObjectKey{Namespace: given.Namespace, Name: name}, held); err != nil {
		w.Fatal(err)
	}
	held.SetFinalizers(finalizers)
	if err := w.api.Update(w.Context(), held); err != nil {
		w.Fatal(err)
	}
}

func TestErrorsOfReadingAreReturnedAndNotTakenForAbsence(t *testing.T) {
	away := errors.New("the API server is away")
	for name, read := range map[string]func(*Reconciler, client.WithWatch){
		"the AppWrapper": func(r *Reconciler, c client.WithWatch) { r.cached = failing(c, away, "a") },
		"a component":    func(r *Reconciler, c client.WithWatch) { r.cached = failing(c, away, "j") },
	} {
		t.Run(name, func(t *testing.T) {
			w := runningWorld(t)
			read(w.reconciler, w.api)
			_, err := w.reconciler.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKey{Namespace: given.Namespace, Name: "a"}})
			if !errors.Is(err, away) {
				t.Errorf("got %v", err)
			}
			w.expectPhase(v1beta2.AppWrapperRunning)
		})
	}
}

func failing(c client.WithWatch, err error, name string) client.Reader {
	return interceptor.NewClient(c, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
			if key.Name == name {
				return err
			}
			return c.Get(ctx, key, object, options...)
		},
	})
}

func TestADeletedAppWrapperGoesAfterItsPods(t *testing.T) {
	w := runningWorld(t)
	if err := w.api.Delete(t.Context(), w.get()); err != nil {
		t.Fatal(err)
	}
	w.now = w.get().DeletionTimestamp.Time
	w.settle()
	w.expectPhase(v1beta2.AppWrapperRunning)
	if w.exists(jobKind, "j") {
		t.Error("the Job is still there")
	}
	w.now = w.now.Add(5 * time.Second)
	w.settle()
	w.expectPhase(v1beta2.AppWrapperTerminating)
	if err := w.api.Delete(t.Context(), pod("j-1", "")); err != nil {
		t.Fatal(err)
	}
	w.settle()
	if w.exists(v1beta2.GroupVersion.WithKind(v1beta2.AppWrapperKind), "a") {
		t.Error("the AppWrapper is still there")
	}
	w.reconcile()
}

func TestForceIsUsedOnPodsFirst(t *testing.T) {
	w := runningWorld(t)
	w.change(func(aw *v1beta2.AppWrapper) { aw.Spec.Suspend = true })
	w.settle()
	w.writes, w.now = nil, w.now.Add(time.Hour)
	w.reconcile()
	if !slices.Equal(w.writes, []string{"delete j-1"}) {
		t.Errorf("writes %q", w.writes)
	}
}

func TestAKindThatNobodyWatchesIsWaitedForOnlyWhileItIsRemoved(t *testing.T) {
	component := given.ConfigMap("c")
	w := newWorld(t, given.AppWrapper("a").With(given.Job("j", 1), component).Unsuspended().Build())
	w.settle()
	w.add(pod("j-1", corev1.PodRunning))
	w.settle()
	if result := w.reconcile(); result.RequeueAfter != 0 {
		t.Errorf("polls while it runs, every %s", result.RequeueAfter)
	}
	w.change(func(aw *v1beta2.AppWrapper) { aw.Spec.Suspend = true })
	if result := w.reconcile(); result.RequeueAfter != pollInterval {
		t.Errorf("looks again after %s while it removes, want %s", result.RequeueAfter, pollInterval)
	}
}

// The caches only contain objects with our label.
func TestAComponentThatLostItsLabelIsAskedFor(t *testing.T) {
	w := runningWorld(t)
	w.changeJob("j", func(job *unstructured.Unstructured) { job.SetLabels(nil) })
	w.reconciler.cached = without(w.api, "j")
	if result := w.reconcile(); result.RequeueAfter != unlabelledPollInterval {
		t.Errorf("looks again after %s while it runs, want %s", result.RequeueAfter, unlabelledPollInterval)
	}
	w.change(func(aw *v1beta2.AppWrapper) { aw.Spec.Suspend = true })
	if result := w.reconcile(); result.RequeueAfter != pollInterval {
		t.Errorf("looks again after %s while it removes, want %s", result.RequeueAfter, pollInterval)
	}
}

func TestNobodyPollsForWhatTheCacheHasYetToHearOf(t *testing.T) {
	w := runningWorld(t)
	w.reconciler.cached = without(w.api, "j")
	if result := w.reconcile(); result.RequeueAfter != 0 {
		t.Errorf("looks again after %s", result.RequeueAfter)
	}
}

// without is a cache that does not have a component yet.
func without(api client.WithWatch, name string) client.Client {
	return interceptor.NewClient(api, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
			if key.Name == name {
				key.Name = "not in the cache"
			}
			return c.Get(ctx, key, object, options...)
		},
	})
}

// poll lets time pass, and reconciles whenever the controller has asked to.
func (w *world) poll(d time.Duration) (looks int) {
	w.Helper()
	for until := w.now.Add(d); w.now.Before(until); looks++ {
		wait := w.reconcile().RequeueAfter
		if wait == 0 {
			w.Fatal("it does not look again")
		}
		w.now = w.now.Add(wait)
	}
	return looks
}

// The kind can be read, but a conversion webhook that is down makes every list fail.
func TestAWatchThatNeverBeginsIsAskedForLessAndLess(t *testing.T) {
	w := runningWorld(t)
	told := events.NewFakeRecorder(100)
	w.reconciler.recorder = told
	w.reconciler.watch = func(context.Context, kinds.Kind) (coverage, error) { return beginning, nil }
	w.liveReads = nil
	looks := w.poll(time.Hour)
	if looks > 70 || len(w.liveReads) > looks {
		t.Errorf("in an hour it looked %d times, with %d requests", looks, len(w.liveReads))
	}
	if len(told.Events) != 1 {
		t.Fatalf("%d events", len(told.Events))
	}
	if event := <-told.Events; !strings.Contains(event, "Warning ComponentNotWatched") || !strings.Contains(event, "Job") {
		t.Error(event)
	}
	w.reconciler.since = w.now
	if result := w.reconcile(); result.RequeueAfter != pollInterval {
		t.Errorf("a new controller waits %s for its watches", result.RequeueAfter)
	}
}

func TestARemovalThatNobodyWatchesIsAskedForLessAndLess(t *testing.T) {
	w := newWorld(t, given.AppWrapper("a").With(given.ConfigMap("c")).Unsuspended().Build())
	w.settle()
	w.hold("c", "example.com/held")
	w.change(func(aw *v1beta2.AppWrapper) { aw.Spec.Suspend = true })
	w.reconcile()
	if looks := w.poll(5 * time.Minute); looks > 40 {
		t.Errorf("in five minutes it looked %d times", looks)
	}
}

func TestAWatchThatIsBeginningIsAwaited(t *testing.T) {
	w := runningWorld(t)
	w.reconciler.watch = func(context.Context, kinds.Kind) (coverage, error) { return beginning, nil }
	if result := w.reconcile(); result.RequeueAfter != pollInterval {
		t.Errorf("looks again after %s, want %s", result.RequeueAfter, pollInterval)
	}
	w.expectPhase(v1beta2.AppWrapperRunning)
}

func TestUsersAreToldOnceAndAfterTheSave(t *testing.T) {
	w := runningWorld(t)
	recorder := make(chan string, 10)
	w.reconciler.recorder = recording(recorder)
	stale := w.get()
	w.setJobCondition("j", "Failed")
	w.reconciler.cached = frozen{w.api, stale}
	w.change(func(aw *v1beta2.AppWrapper) { aw.Labels = map[string]string{"changed": "meanwhile"} })
	w.reconcile()
	if len(recorder) > 0 {
		t.Fatalf("the status was not saved, but an event was sent: %s", <-recorder)
	}
	w.reconciler.cached = w.api
	w.settle()
	if got := <-recorder; !strings.HasPrefix(got, "Warning FailedComponent") || len(recorder) > 0 {
		t.Errorf("got %q and %d more", got, len(recorder))
	}
}

func TestWaits(t *testing.T) {
	for name, tc := range map[string]struct {
		waits []time.Duration
		want  time.Duration
	}{
		"no wait is never":             {[]time.Duration{0, 0}, 0},
		"the sooner wait counts":       {[]time.Duration{3, 0, 2}, 2},
		"a wait in the past is no one": {[]time.Duration{-1, 5}, 5},
	} {
		t.Run(name, func(t *testing.T) {
			if got := shortest(tc.waits...); got != tc.want {
				t.Errorf("got %d, want %d", got, tc.want)
			}
		})
	}
}
