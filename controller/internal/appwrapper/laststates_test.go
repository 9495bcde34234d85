// SPDX-License-Identifier: Apache-2.0

package appwrapper

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllertest"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/internal/kinds"
	"github.com/mlbatch/mlbatch/controller/internal/lifecycle"
	"github.com/mlbatch/mlbatch/test/given"
)

// endedJob is a Job of "a" as its watch tells of it, with this condition, of that attempt.
func endedJob(t *testing.T, condition, attempt string) *unstructured.Unstructured {
	t.Helper()
	object := job("j", "a")
	object.SetAnnotations(map[string]string{v1beta2.AttemptAnnotation: attempt})
	if condition != "" {
		object.Object["status"] = map[string]any{"conditions": []any{map[string]any{"type": condition, "status": "True"}}}
	}
	return watched(t, object)
}

// watched is what caches keep of a component.
func watched(t *testing.T, object *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	kept, err := newInterner().slimComponent(object)
	if err != nil {
		t.Fatal(err)
	}
	return kept.(*unstructured.Unstructured)
}

// listen gives the reconciler a memory of how components ended, and returns what feeds it.
func (w *world) listen() toolscache.ResourceEventHandler {
	w.Helper()
	watches, _, _ := watchWorld(w.T)
	w.reconciler.lastState = watches.ended.get
	return watches.ended.note(kinds.For(jobKind), wakeOwner(kinds.For(jobKind), watches.queue, deployed))
}

// A Job with ttlSecondsAfterFinished: 0 may be gone before the first look at its end. Its watch
// has told how it ended.
func TestAComponentThatIsGoneHasEndedAsItsWatchTold(t *testing.T) {
	present := attempt(runningWorld(t).get())
	const before = "2026-01-02T03:04:04Z" // a second
	complete := func() *unstructured.Unstructured { return endedJob(t, "Complete", present) }
	for sentence, tc := range map[string]struct {
		happens func(h toolscache.ResourceEventHandler)
		phase   v1beta2.AppWrapperPhase
		reason  string // of Unhealthy
	}{
		"one that was complete has succeeded": {
			func(h toolscache.ResourceEventHandler) { h.OnDelete(complete()) },
			v1beta2.AppWrapperSucceeded, v1beta2.ReasonFoundNoFailedPods},
		"one whose removal the watch missed, too": {
			func(h toolscache.ResourceEventHandler) {
				h.OnDelete(toolscache.DeletedFinalStateUnknown{Obj: complete()})
			},
			v1beta2.AppWrapperSucceeded, v1beta2.ReasonFoundNoFailedPods},
		"one that had failed is retried": {
			func(h toolscache.ResourceEventHandler) { h.OnDelete(endedJob(t, "Failed", present)) },
			v1beta2.AppWrapperResetting, v1beta2.ReasonFailedComponent},
		"one that was running is missing": {
			func(h toolscache.ResourceEventHandler) { h.OnDelete(endedJob(t, "", present)) },
			v1beta2.AppWrapperFailed, v1beta2.ReasonMissingComponent},
		"one of an attempt before tells nothing": {
			func(h toolscache.ResourceEventHandler) { h.OnDelete(endedJob(t, "Complete", before)) },
			v1beta2.AppWrapperFailed, v1beta2.ReasonMissingComponent},
		"one that does not name its attempt tells nothing": {
			func(h toolscache.ResourceEventHandler) { h.OnDelete(endedJob(t, "Complete", "")) },
			v1beta2.AppWrapperFailed, v1beta2.ReasonMissingComponent},
		"one that another has followed tells nothing": {
			func(h toolscache.ResourceEventHandler) {
				h.OnDelete(complete())
				h.OnAdd(endedJob(t, "", present), false)
				h.OnDelete(endedJob(t, "", present))
			},
			v1beta2.AppWrapperFailed, v1beta2.ReasonMissingComponent},
		"one of another AppWrapper tells nothing": {
			func(h toolscache.ResourceEventHandler) {
				of := complete()
				of.SetOwnerReferences(job("j", "another").GetOwnerReferences())
				h.OnDelete(of)
			},
			v1beta2.AppWrapperFailed, v1beta2.ReasonMissingComponent},
	} {
		t.Run(sentence, func(t *testing.T) {
			w := runningWorld(t)
			tc.happens(w.listen())
			w.vanish()
			w.reconcile()
			w.expectPhase(tc.phase)
			unhealthy := meta.FindStatusCondition(w.get().Status.Conditions, string(v1beta2.Unhealthy))
			if unhealthy == nil || unhealthy.Reason != tc.reason {
				t.Errorf("Unhealthy is %+v", unhealthy)
			}
		})
	}
}

// Attempts are named by seconds.
func TestTheLastWordsOfAnAttemptOfTheSameSecondTellNothing(t *testing.T) {
	for sentence, tc := range map[string]struct {
		removed time.Duration // the attempt before, before now
		phase   v1beta2.AppWrapperPhase
	}{
		"the last was removed a second before": {time.Second, v1beta2.AppWrapperSucceeded},
		"the last was removed just before":     {0, v1beta2.AppWrapperFailed},
	} {
		t.Run(sentence, func(t *testing.T) {
			w := runningWorld(t)
			w.followsOne(tc.removed)
			w.listen().OnDelete(endedJob(t, "Complete", attempt(w.get())))
			w.vanish()
			w.reconcile()
			w.expectPhase(tc.phase)
		})
	}
}

// resumingWorld has an AppWrapper of the Jobs "j", which exists, and "k", which is refused.
func resumingWorld(t *testing.T, retryPause string) *world {
	t.Helper()
	aw := given.AppWrapper("a").With(given.Job("j", 1), given.Job("k", 1)).Unsuspended().Build()
	aw.Annotations = map[string]string{v1beta2.RetryPausePeriodDurationAnnotation: retryPause}
	w := newWorld(t, aw)
	w.refuse = func(object client.Object) error {
		if object.GetName() == "k" {
			return apierrors.NewTooManyRequests("not now", 1)
		}
		return nil
	}
	w.settle()
	w.expectPhase(v1beta2.AppWrapperResuming)
	return w
}

// goes lets the Job end in that way, or run on, and be removed at once. The watch hears it.
func (w *world) goes(name, condition string, hears toolscache.ResourceEventHandler) {
	w.Helper()
	if condition != "" {
		w.setJobCondition(name, condition)
	}
	ended := job(name, "")
	if err := w.api.Get(w.Context(), client.ObjectKeyFromObject(ended), ended); err != nil {
		w.Fatal(err)
	}
	if err := w.api.Delete(w.Context(), ended); err != nil {
		w.Fatal(err)
	}
	hears.OnDelete(watched(w.T, ended))
}

// permit lets "k" be created, and everything settle.
func (w *world) permit() {
	w.Helper()
	w.refuse, w.now = nil, w.now.Add(10*time.Second)
	w.settle()
}

func (w *world) expectCreations(name string, want int) {
	w.Helper()
	got := 0
	for _, write := range w.writes {
		if write == "create "+name {
			got++
		}
	}
	if got != want {
		w.Errorf("%s was created %d times, want %d", name, got, want)
	}
}

func TestAComponentThatEndedWhileOthersAreCreatedIsNotRunAgain(t *testing.T) {
	for sentence, tc := range map[string]struct {
		condition string
		restarts  bool
		creations int
		phase     v1beta2.AppWrapperPhase
	}{
		"one that was complete has succeeded":               {"Complete", false, 1, v1beta2.AppWrapperRunning},
		"one that had failed is retried with the others":    {"Failed", false, 1, v1beta2.AppWrapperResetting},
		"one that somebody removed is created again":        {"", false, 2, v1beta2.AppWrapperRunning},
		"one whose end a new controller has not heard, too": {"Complete", true, 2, v1beta2.AppWrapperRunning},
	} {
		t.Run(sentence, func(t *testing.T) {
			w := resumingWorld(t, "1m")
			w.goes("j", tc.condition, w.listen())
			if tc.restarts {
				w.listen()
			}
			w.permit()
			w.expectCreations("j", tc.creations)
			w.expectPhase(tc.phase)
		})
	}
}

// The attempts may follow each other within seconds.
func TestAComponentThatEndedInTheAttemptBeforeIsRunAgain(t *testing.T) {
	w := resumingWorld(t, "0s")
	hears := w.listen()
	w.goes("j", "Complete", hears)
	w.permit()
	w.expectPhase(v1beta2.AppWrapperRunning)
	w.goes("k", "Failed", hears)
	w.now = w.now.Add(time.Second)
	w.settle()
	w.expectPhase(v1beta2.AppWrapperRunning)
	w.expectCreations("j", 2)
	w.expectCreations("k", 3) // one was refused
}

// vanish removes the Job "j" and its pod.
func (w *world) vanish() {
	w.Helper()
	for _, object := range []client.Object{job("j", "a"), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: given.Namespace, Name: "j-1"}}} {
		if err := w.api.Delete(w.Context(), object); err != nil {
			w.Fatal(err)
		}
	}
}

func TestWatchesNoteHowComponentsEnded(t *testing.T) {
	w, informers, mapper := watchWorld(t)
	mapper.Add(jobKind, meta.RESTScopeNamespace)
	informer := controllertest.NewFakeInformer()
	informers.InformersByGVK = map[schema.GroupVersionKind]toolscache.SharedIndexInformer{jobKind: informer}
	expectCoverage(t, w, jobKind, beginning)
	gone := endedJob(t, "Complete", "")
	informer.Delete(gone)
	if got := w.ended.get(kinds.For(jobKind), client.ObjectKeyFromObject(gone)); got != client.Object(gone) {
		t.Errorf("got %v", got)
	}
}

// Whatever else is not in the cache may be in the API server.
func TestWhatAWatchSawGoIsNotAskedFor(t *testing.T) {
	present := attempt(runningWorld(t).get())
	complete := func() *unstructured.Unstructured { return endedJob(t, "Complete", present) }
	for sentence, tc := range map[string]struct {
		watch    func(h toolscache.ResourceEventHandler)
		before   func(*v1beta2.AppWrapper)
		stays    bool // the AppWrapper is not deleted
		askedFor bool
	}{
		"a Job that has succeeded":                             {watch: func(h toolscache.ResourceEventHandler) { h.OnDelete(complete()) }},
		"it may have lost its label, and the AppWrapper stays": {watch: func(h toolscache.ResourceEventHandler) { h.OnDelete(complete()) }, stays: true, askedFor: true},
		"nobody saw it go":                                     {watch: func(toolscache.ResourceEventHandler) {}, askedFor: true},
		"another one followed it": {watch: func(h toolscache.ResourceEventHandler) {
			h.OnDelete(complete())
			h.OnAdd(complete(), false)
		}, askedFor: true},
		"it was of an attempt before": {watch: func(h toolscache.ResourceEventHandler) { h.OnDelete(endedJob(t, "Complete", "2026-01-02T03:04:04Z")) }, askedFor: true},
		"it had failed":               {watch: func(h toolscache.ResourceEventHandler) { h.OnDelete(endedJob(t, "Failed", present)) }, askedFor: true},
		"it was of another AppWrapper": {watch: func(h toolscache.ResourceEventHandler) {
			of := complete()
			of.SetOwnerReferences(job("j", "another").GetOwnerReferences())
			h.OnDelete(of)
		}, askedFor: true},
		"nobody has recorded its success": {watch: func(h toolscache.ResourceEventHandler) { h.OnDelete(complete()) }, before: func(aw *v1beta2.AppWrapper) {
			meta.RemoveStatusCondition(&aw.Status.ComponentStatus[0].Conditions, string(v1beta2.ComponentSucceeded))
		}, askedFor: true},
		"the work goes on": {watch: func(h toolscache.ResourceEventHandler) { h.OnDelete(complete()) }, before: func(aw *v1beta2.AppWrapper) {
			aw.Status.Phase = v1beta2.AppWrapperRunning
		}, askedFor: true},
	} {
		t.Run(sentence, func(t *testing.T) {
			w := runningWorld(t)
			w.setJobCondition("j", "Complete")
			w.setPodPhase("j-1", corev1.PodSucceeded)
			w.settle()
			w.expectPhase(v1beta2.AppWrapperSucceeded)
			if aw := w.get(); tc.before != nil {
				tc.before(aw)
				if err := w.api.Status().Update(t.Context(), aw); err != nil {
					t.Fatal(err)
				}
			}
			tc.watch(w.listen())
			w.vanish()
			if !tc.stays {
				if err := w.api.Delete(t.Context(), w.get()); err != nil {
					t.Fatal(err)
				}
				w.now = w.get().DeletionTimestamp.Time
			}
			w.liveReads = nil
			w.reconcile()
			if got := slices.Contains(w.liveReads, "get j"); got != tc.askedFor {
				t.Errorf("asks for the Job: %t, want %t", got, tc.askedFor)
			}
		})
	}
}

// The controllers of other kinds may make pods for what has lost our label.
func TestWhatMayMakePodsIsAskedFor(t *testing.T) {
	for kind, want := range map[schema.GroupVersionKind]bool{jobKind: true, {Group: "jobset.x-k8s.io", Version: "v1alpha2", Kind: "JobSet"}: false} {
		object := job("j", "a")
		object.SetGroupVersionKind(kind)
		object.Object["status"] = map[string]any{"conditions": []any{map[string]any{"type": "Complete", "status": "True"}, map[string]any{"type": "Completed", "status": "True"}}}
		aw := runningWorld(t).get()
		object.SetAnnotations(map[string]string{v1beta2.AttemptAnnotation: attempt(aw)})
		aw.Status.Phase = v1beta2.AppWrapperSucceeded
		aw.Status.ComponentStatus[0].Conditions = []metav1.Condition{{Type: string(v1beta2.ComponentSucceeded), Status: metav1.ConditionTrue}}
		r := &Reconciler{lastState: func(kinds.Kind, types.NamespacedName) client.Object { return watched(t, object) }}
		o := &observation{aw: aw, components: []component{{kind: kinds.For(kind)}}}
		o.snapshot.Deleting, o.snapshot.Status, o.snapshot.Components = true, aw.Status, []lifecycle.Component{{Name: "j"}}
		if got := r.sawItGo(o, 0); got != want {
			t.Errorf("%s: %t", kind.Kind, got)
		}
	}
}
