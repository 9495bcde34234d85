// SPDX-License-Identifier: Apache-2.0

package appwrapper

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllertest"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/internal/kinds"
	"github.com/mlbatch/mlbatch/test/given"
)

// endedJob is a Job of "a" with this condition, created at that time.
func endedJob(condition string, created time.Time) *unstructured.Unstructured {
	object := job("j", "a")
	object.SetCreationTimestamp(metav1.NewTime(created))
	if condition != "" {
		object.Object["status"] = map[string]any{"conditions": []any{map[string]any{"type": condition, "status": "True"}}}
	}
	return object
}

// A Job with ttlSecondsAfterFinished: 0 may be gone before the first look at its end. Its watch
// has told how it ended.
func TestAComponentThatIsGoneHasEndedAsItsWatchTold(t *testing.T) {
	for sentence, tc := range map[string]struct {
		happens func(h toolscache.ResourceEventHandler, now time.Time)
		phase   v1beta2.AppWrapperPhase
		reason  string // of Unhealthy
	}{
		"one that was complete has succeeded": {
			func(h toolscache.ResourceEventHandler, now time.Time) { h.OnDelete(endedJob("Complete", now)) },
			v1beta2.AppWrapperSucceeded, v1beta2.ReasonFoundNoFailedPods},
		"one whose removal the watch missed, too": {
			func(h toolscache.ResourceEventHandler, now time.Time) {
				h.OnDelete(toolscache.DeletedFinalStateUnknown{Obj: endedJob("Complete", now)})
			},
			v1beta2.AppWrapperSucceeded, v1beta2.ReasonFoundNoFailedPods},
		"one that had failed is retried": {
			func(h toolscache.ResourceEventHandler, now time.Time) { h.OnDelete(endedJob("Failed", now)) },
			v1beta2.AppWrapperResetting, v1beta2.ReasonFailedComponent},
		"one that was running is missing": {
			func(h toolscache.ResourceEventHandler, now time.Time) { h.OnDelete(endedJob("", now)) },
			v1beta2.AppWrapperFailed, v1beta2.ReasonMissingComponent},
		"one of an attempt before tells nothing": {
			func(h toolscache.ResourceEventHandler, now time.Time) {
				h.OnDelete(endedJob("Complete", now.Add(-time.Hour)))
			},
			v1beta2.AppWrapperFailed, v1beta2.ReasonMissingComponent},
		"one that another has followed tells nothing": {
			func(h toolscache.ResourceEventHandler, now time.Time) {
				h.OnDelete(endedJob("Complete", now))
				h.OnAdd(endedJob("", now), false)
				h.OnDelete(endedJob("", now))
			},
			v1beta2.AppWrapperFailed, v1beta2.ReasonMissingComponent},
		"one of another AppWrapper tells nothing": {
			func(h toolscache.ResourceEventHandler, now time.Time) {
				of := endedJob("Complete", now)
				of.SetOwnerReferences(job("j", "another").GetOwnerReferences())
				h.OnDelete(of)
			},
			v1beta2.AppWrapperFailed, v1beta2.ReasonMissingComponent},
	} {
		t.Run(sentence, func(t *testing.T) {
			w := runningWorld(t)
			watches, _, _ := watchWorld(t)
			w.reconciler.lastState = watches.ended.get
			tc.happens(watches.ended.note(kinds.For(jobKind), wakeOwner(kinds.For(jobKind), watches.queue)), w.now)
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
	gone := endedJob("Complete", time.Now())
	informer.Delete(gone)
	if got := w.ended.get(kinds.For(jobKind), client.ObjectKeyFromObject(gone)); got != client.Object(gone) {
		t.Errorf("got %v", got)
	}
}
