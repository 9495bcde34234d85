// SPDX-License-Identifier: Apache-2.0

package appwrapper

import (
	"context"
	"errors"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/internal/kinds"
	"github.com/mlbatch/mlbatch/test/given"
)

// unreadable has a Job "j" and a ConfigMap "c", both deployed. Nothing is watched, and the
// controller is no longer allowed to get the object with this name.
func unreadable(t *testing.T, name string) *world {
	t.Helper()
	companion := given.Component(map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "c"}})
	w := newWorld(t, given.AppWrapper("a").With(companion).With(given.Job("j", 1)).Unsuspended().Build())
	w.settle()
	w.expectPhase(v1beta2.AppWrapperRunning)
	w.reconciler.watch = func(context.Context, kinds.Kind) (coverage, error) { return uncovered, nil }
	w.reconciler.live = interceptor.NewClient(w.api, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
			if key.Name == name {
				return apierrors.NewForbidden(schema.GroupResource{Resource: "things"}, key.Name, errors.New("no"))
			}
			return c.Get(ctx, key, object, options...)
		},
	})
	return w
}

// persist reconciles a few times and returns the last error.
func (w *world) persist() (last error) {
	for range 5 {
		_, last = w.reconciler.Reconcile(w.Context(), reconcile.Request{NamespacedName: client.ObjectKey{Namespace: given.Namespace, Name: "a"}})
	}
	return last
}

func (w *world) delete() {
	w.Helper()
	if err := w.api.Delete(w.Context(), w.get()); err != nil {
		w.Fatal(err)
	}
}

func TestACompanionThatMayNotBeSeenIsLeftToTheGarbageCollector(t *testing.T) {
	w := unreadable(t, "c")
	if err := w.persist(); err != nil {
		t.Errorf("while it runs: %v", err)
	}
	w.delete()
	if err := w.persist(); err != nil {
		t.Error(err)
	}
	if err := w.api.Get(t.Context(), client.ObjectKey{Namespace: given.Namespace, Name: "a"}, &v1beta2.AppWrapper{}); !apierrors.IsNotFound(err) {
		t.Errorf("the AppWrapper is still there: %v", err)
	}
	if w.exists(jobKind, "j") {
		t.Error("the job is still there")
	}
}

func TestWhatMayNotBeSeenKeepsNothingElseAlive(t *testing.T) {
	for sentence, tc := range map[string]struct {
		unreadable string
		end        func(*world)
		gone       schema.GroupVersionKind
	}{
		"a job, when its AppWrapper is deleted":        {"j", (*world).delete, configMapKind},
		"a job, when Kueue takes the quota back":       {"j", suspended, configMapKind},
		"a companion, when Kueue takes the quota back": {"c", suspended, jobKind},
	} {
		t.Run(sentence, func(t *testing.T) {
			w := unreadable(t, tc.unreadable)
			tc.end(w)
			if err := w.persist(); err == nil || !strings.Contains(err.Error(), "the permission to get it is missing") {
				t.Errorf("got %v", err)
			}
			if w.exists(tc.gone, map[schema.GroupVersionKind]string{jobKind: "j", configMapKind: "c"}[tc.gone]) {
				t.Errorf("%s is still there", tc.gone.Kind)
			}
			aw := w.get()
			removal := meta.FindStatusCondition(aw.Status.Conditions, string(v1beta2.DeletingResources))
			if removal == nil || !strings.Contains(removal.Message, "lacks the permission to get") || !hasFinalizer(aw) {
				t.Errorf("finalizers %q, %+v", aw.Finalizers, removal)
			}
		})
	}
}

func suspended(w *world) {
	w.change(func(aw *v1beta2.AppWrapper) { aw.Spec.Suspend = true })
}
