// SPDX-License-Identifier: Apache-2.0

package appwrapper

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/internal/lifecycle"
	"github.com/mlbatch/mlbatch/test/given"
)

// refuses runs one reconcile of "a", which must return this error.
func (w *world) refuses(refusal error) {
	w.Helper()
	_, err := w.reconciler.Reconcile(w.Context(), reconcile.Request{NamespacedName: client.ObjectKey{Namespace: given.Namespace, Name: "a"}})
	if !errors.Is(err, refusal) {
		w.Errorf("got %v, want %v", err, refusal)
	}
}

func TestAComponentThatCannotBeDeletedDoesNotProtectTheNext(t *testing.T) {
	w := newWorld(t, given.AppWrapper("a").With(given.ConfigMap("c"), given.Job("j", 1)).Unsuspended().Build())
	w.settle()
	refusal := errors.New("a webhook says no")
	w.refuseDelete = func(object client.Object) error {
		if object.GetName() == "c" {
			return refusal
		}
		return nil
	}
	w.change(func(aw *v1beta2.AppWrapper) { aw.Spec.Suspend = true })
	w.refuses(refusal)
	if w.exists(jobKind, "j") {
		t.Error("the Job is still there")
	}
}

func TestAPodThatCannotBeDeletedDoesNotProtectTheNext(t *testing.T) {
	w := runningWorld(t)
	w.add(pod("j-2", corev1.PodRunning))
	w.change(func(aw *v1beta2.AppWrapper) { aw.Spec.Suspend = true })
	w.settle()
	refusal := errors.New("a webhook says no")
	w.refuseDelete = func(client.Object) error { return refusal }
	w.writes, w.now = nil, w.now.Add(time.Hour)
	w.refuses(refusal)
	if !slices.Equal(w.writes, []string{"delete j-1", "delete j-2"}) {
		t.Errorf("writes %q", w.writes)
	}
}

// A webhook may answer with a conflict, too. Then the reconcile ends all the same.
func TestADeletionThatConflictsIsNotRepeatedAtOnce(t *testing.T) {
	w := runningWorld(t)
	w.refuseDelete = func(client.Object) error {
		return apierrors.NewConflict(schema.GroupResource{Resource: "jobs"}, "j", errors.New("a webhook says no"))
	}
	w.change(func(aw *v1beta2.AppWrapper) { aw.Spec.Suspend = true })
	w.writes, w.liveReads = nil, nil
	w.reconcile()
	if want := []string{"patch status of a", "delete j", "delete j"}; !slices.Equal(w.writes, want) || !slices.Equal(w.liveReads, []string{"get j"}) {
		t.Errorf("writes %q, live reads %q", w.writes, w.liveReads)
	}
}

// A new process may start with an outdated AppWrapper.
func TestTheNextAttemptIsNotDeletedForTheLast(t *testing.T) {
	w := runningWorld(t)
	w.change(func(aw *v1beta2.AppWrapper) { aw.Spec.Suspend = true })
	unsent := errors.New("connection refused")
	w.refuseDelete = func(client.Object) error { return unsent }
	w.refuses(unsent)
	w.refuseDelete = nil
	w.expectPhase(v1beta2.AppWrapperSuspending)
	w.reconciler.cached = frozen{w.api, w.get()}
	w.change(func(aw *v1beta2.AppWrapper) { aw.Spec.Suspend = false })
	w.reconcile()
	if !w.exists(jobKind, "j") {
		t.Error("a process with an outdated AppWrapper deleted the Job")
	}
	w.now = w.now.Add(time.Hour)
	if err := w.api.Delete(t.Context(), job("j", "")); err != nil {
		t.Fatal(err)
	}
	w.reconcile()
	if !w.exists(podKind, "j-1") {
		t.Error("a process with an outdated AppWrapper deleted the pod")
	}
}

// Somebody has lost patience, removed the finalizer and created it again, and the cache lags behind. Pods are
// found by the name of their AppWrapper.
func TestWhatIsNewIsNotForcedOutForTheLastOfItsName(t *testing.T) {
	w := runningWorld(t)
	w.delete()
	w.now = w.get().DeletionTimestamp.Add(time.Minute)
	w.settle()
	w.expectPhase(v1beta2.AppWrapperTerminating)
	w.reconciler.cached = frozen{w.api, w.get()}
	w.change(func(aw *v1beta2.AppWrapper) { aw.Finalizers = nil })
	next := given.AppWrapper("a").With(given.Job("j", 1)).Build()
	next.UID = "next"
	w.add(next)
	w.now = w.now.Add(time.Hour)
	w.reconcile()
	if !w.exists(podKind, "j-1") {
		t.Error("a process with an outdated AppWrapper deleted the pod of the next one by force")
	}
}

// With kubectl delete --cascade=orphan, the remaining pods would run without quota.
func TestADeletionThatIsToSpareTheComponentsRemovesThem(t *testing.T) {
	for name, orphan := range map[string]func(*world){
		"while the garbage collector is at work": func(w *world) {
			w.change(func(aw *v1beta2.AppWrapper) {
				aw.Finalizers = append(aw.Finalizers, metav1.FinalizerOrphanDependents)
			})
		},
		"when the garbage collector has been there": func(w *world) {
			w.changeJob("j", func(job *unstructured.Unstructured) { job.SetOwnerReferences(nil) })
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := runningWorld(t)
			orphan(w)
			w.delete()
			w.reconcile()
			if result := w.reconcile(); w.exists(jobKind, "j") {
				t.Errorf("the Job is still there, and the next look is after %s", result.RequeueAfter)
			}
			if !hasFinalizer(w.get()) {
				t.Error("the finalizer was removed, but the pod still exists")
			}
			if err := w.api.Delete(t.Context(), pod("j-1", "")); err != nil {
				t.Fatal(err)
			}
			w.reconcile()
			if w.exists(v1beta2.GroupVersion.WithKind(v1beta2.AppWrapperKind), "a") && hasFinalizer(w.get()) {
				t.Error("the AppWrapper still exists")
			}
		})
	}
}

// It has no owner, so its removal does not wake the controller.
func TestAnOrphanIsAskedForUntilItIsGone(t *testing.T) {
	w := runningWorld(t)
	w.changeJob("j", func(job *unstructured.Unstructured) {
		job.SetOwnerReferences(nil)
		job.SetFinalizers([]string{"example.com/keep"})
	})
	w.delete()
	w.reconcile()
	w.reconcile()
	if result := w.reconcile(); result.RequeueAfter != pollInterval {
		t.Errorf("looks again after %s, want %s", result.RequeueAfter, pollInterval)
	}
}

// It is no orphan of ours if another controller has created or adopted it in the meantime.
func TestWhatBelongsToAnotherIsSpared(t *testing.T) {
	for sentence, change := range map[string]func(*unstructured.Unstructured){
		"it has another owner": func(job *unstructured.Unstructured) {
			job.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "CronJob", Name: "c", UID: "c", Controller: new(true)}})
		},
		"it has not our label": func(job *unstructured.Unstructured) {
			job.SetOwnerReferences(nil)
			job.SetLabels(nil)
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			w := runningWorld(t)
			w.changeJob("j", change)
			w.delete()
			w.reconcile()
			w.reconcile()
			if !w.exists(jobKind, "j") {
				t.Error("the Job was deleted")
			}
		})
	}
}

// The watch behind the cache has ended, for example because the CRD was deleted.
func TestARemovalDoesNotWaitForACacheThatIsDeaf(t *testing.T) {
	for name, going := range map[string]*metav1.Time{
		"it has not heard of the deletion": nil,
		"it has not heard of the end":      {Time: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)},
	} {
		t.Run(name, func(t *testing.T) {
			w := runningWorld(t)
			last := &unstructured.Unstructured{}
			last.SetGroupVersionKind(jobKind)
			if err := w.api.Get(t.Context(), client.ObjectKey{Namespace: given.Namespace, Name: "j"}, last); err != nil {
				t.Fatal(err)
			}
			last.SetDeletionTimestamp(going)
			for _, object := range []client.Object{job("j", ""), pod("j-1", ""), w.get()} {
				if err := w.api.Delete(t.Context(), object); err != nil {
					t.Fatal(err)
				}
			}
			w.reconciler.cached = remembering(w.api, last)
			w.settle()
			w.now = w.now.Add(lifecycle.StandardDefaults().ForcefulDeletionGrace)
			w.settle()
			if w.exists(v1beta2.GroupVersion.WithKind(v1beta2.AppWrapperKind), "a") {
				t.Error("the AppWrapper still exists")
			}
		})
	}
}

// remembering is a cache from which no Job is ever removed.
func remembering(api client.WithWatch, last *unstructured.Unstructured) client.Reader {
	return interceptor.NewClient(api, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
			if job, ok := object.(*unstructured.Unstructured); ok {
				last.DeepCopyInto(job)
				return nil
			}
			return c.Get(ctx, key, object, options...)
		},
	})
}
