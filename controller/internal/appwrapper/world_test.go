// SPDX-License-Identifier: Apache-2.0

package appwrapper

import (
	"context"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/internal/echoes"
	"github.com/mlbatch/mlbatch/controller/internal/kinds"
	"github.com/mlbatch/mlbatch/controller/internal/lifecycle"
	"github.com/mlbatch/mlbatch/test/given"
)

var (
	jobKind       = schema.GroupVersionKind{Group: "batch", Version: "v1", Kind: "Job"}
	configMapKind = schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
	nodeKind      = schema.GroupVersionKind{Version: "v1", Kind: "Node"}
	customKind    = schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Custom"}
)

// world is a reconciler with an API server in memory. It records the reconciler's requests.
type world struct {
	*testing.T
	api        client.WithWatch
	reconciler *Reconciler
	now        time.Time

	// writes and liveReads are what would be requests in a real cluster.
	writes, liveReads []string
	// diesAt is the number of the write before which the process dies; 0 is none.
	diesAt int
	// noted, if not nil, is called before each write.
	noted func()
	// refuse may return an error for the creation of an object.
	refuse func(client.Object) error
	// refuseDelete may return an error for the deletion of an object.
	refuseDelete func(client.Object) error
	// permitted is the answer to reviews of the controller's own permissions.
	permitted bool
}

func newWorld(t *testing.T, objects ...client.Object) *world {
	t.Helper()
	mapper := meta.NewDefaultRESTMapper(nil)
	for _, kind := range []schema.GroupVersionKind{jobKind, configMapKind, podKind, v1beta2.GroupVersion.WithKind(v1beta2.AppWrapperKind)} {
		mapper.Add(kind, meta.RESTScopeNamespace)
	}
	mapper.Add(nodeKind, meta.RESTScopeRoot)
	w := &world{T: t, now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), permitted: true}
	w.api = fake.NewClientBuilder().WithScheme(scheme(t)).WithRESTMapper(mapper).
		WithStatusSubresource(&v1beta2.AppWrapper{}).
		WithIndex(&corev1.Pod{}, podsByAppWrapper, appWrapperOfPod).
		WithIndex(&corev1.Pod{}, podsByNode, nodeOfPod).
		WithIndex(&v1beta2.AppWrapper{}, appWrappersByAvoidance, avoidanceOfAppWrapper).
		WithObjects(objects...).Build()
	counters, err := newMetrics(prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	w.reconciler = &Reconciler{
		client: w.counting(),
		cached: w.api,
		live:   w.countingReads(),
		watch: func(_ context.Context, kind kinds.Kind) (coverage, error) {
			if kind.HasVerdict() {
				return covered, nil
			}
			return uncovered, nil
		},
		lastState: func(kinds.Kind, types.NamespacedName) client.Object { return nil },
		heard:     newHeard(func() time.Time { return w.now }),
		evicted:   notEvicted,
		says:      saysNothing,
		reclaimed: notEvicted,
		waits:     notWaiting,
		reserved:  neverReserved,
		giveBack:  notGivenBack,
		reassign:  notReassigned,
		recorder:  events.NewFakeRecorder(100),
		metrics:   counters,
		defaults:  lifecycle.StandardDefaults(),
		now:       func() time.Time { return w.now },
	}
	return w
}

// verbOf tells creations with dry run from others.
func verbOf(options []client.CreateOption) string {
	var all client.CreateOptions
	if len(all.ApplyOptions(options).DryRun) > 0 {
		return "try"
	}
	return "create"
}

func scheme(t testing.TB) *runtime.Scheme {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, authorizationv1.AddToScheme, v1beta2.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	return scheme
}

func (w *world) counting() client.Client {
	return interceptor.NewClient(w.api, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.CreateOption) error {
			if review, ok := object.(*authorizationv1.SelfSubjectAccessReview); ok {
				review.Status.Allowed = w.permitted
				return nil
			}
			w.note(verbOf(options) + " " + object.GetName())
			if w.refuse != nil {
				if err := w.refuse(object); err != nil {
					return err
				}
			}
			return c.Create(ctx, object, options...)
		},
		Delete: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.DeleteOption) error {
			w.note("delete " + object.GetName())
			if w.refuseDelete != nil {
				if err := w.refuseDelete(object); err != nil {
					return err
				}
			}
			return c.Delete(ctx, object, options...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, options ...client.PatchOption) error {
			w.note("patch " + object.GetName())
			return c.Patch(ctx, object, patch, options...)
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, object client.Object, patch client.Patch, options ...client.SubResourcePatchOption) error {
			w.note("patch " + sub + " of " + object.GetName())
			return c.SubResource(sub).Patch(ctx, object, patch, options...)
		},
	})
}

func (w *world) note(write string) {
	if len(w.writes)+1 == w.diesAt {
		panic(w.diesAt)
	}
	if w.noted != nil {
		w.noted()
	}
	w.writes = append(w.writes, write)
}

// dieAt reconciles until the process dies just before its nth write. Then another one starts.
func (w *world) dieAt(n int) {
	w.Helper()
	defer func() {
		if reason := recover(); reason != n {
			w.Fatalf("it did not die: %v", reason)
		}
		w.diesAt, w.reconciler.echoes = 0, echoes.Pending{}
	}()
	w.diesAt = n
	w.settle()
}

func (w *world) countingReads() client.Reader {
	return interceptor.NewClient(w.api, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
			w.liveReads = append(w.liveReads, "get "+key.Name)
			return c.Get(ctx, key, object, options...)
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			w.liveReads = append(w.liveReads, "list")
			return c.List(ctx, list, options...)
		},
	})
}

// reconcile runs one reconcile of "a" and returns the result.
func (w *world) reconcile() reconcile.Result {
	w.Helper()
	result, err := w.reconciler.Reconcile(w.Context(), reconcile.Request{NamespacedName: client.ObjectKey{Namespace: given.Namespace, Name: "a"}})
	if err != nil {
		w.Fatal(err)
	}
	return result
}

// settle reconciles until nothing changes.
func (w *world) settle() {
	w.Helper()
	for range 20 {
		done := len(w.writes)
		if result := w.reconcile(); len(w.writes) == done && result.RequeueAfter != atOnce {
			return
		}
	}
	w.Fatal("does not settle")
}

func (w *world) get() *v1beta2.AppWrapper {
	w.Helper()
	aw := &v1beta2.AppWrapper{}
	if err := w.api.Get(w.Context(), client.ObjectKey{Namespace: given.Namespace, Name: "a"}, aw); err != nil {
		w.Fatal(err)
	}
	return aw
}

func (w *world) change(change func(*v1beta2.AppWrapper)) {
	w.Helper()
	aw := w.get()
	change(aw)
	if err := w.api.Update(w.Context(), aw); err != nil {
		w.Fatal(err)
	}
}

func (w *world) expectPhase(want v1beta2.AppWrapperPhase) {
	w.Helper()
	if got := w.get().Status.Phase; got != want {
		w.Errorf("phase is %q, want %q", got, want)
	}
}

// exists reports whether the API server has the object.
func (w *world) exists(kind schema.GroupVersionKind, name string) bool {
	w.Helper()
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(kind)
	err := w.api.Get(w.Context(), client.ObjectKey{Namespace: given.Namespace, Name: name}, object)
	if client.IgnoreNotFound(err) != nil {
		w.Fatal(err)
	}
	return !apierrors.IsNotFound(err)
}

// add creates an object without the reconciler.
func (w *world) add(object client.Object) {
	w.Helper()
	if err := w.api.Create(w.Context(), object); err != nil {
		w.Fatal(err)
	}
}

func (w *world) setJobCondition(name, condition string) {
	w.Helper()
	job := &unstructured.Unstructured{}
	job.SetGroupVersionKind(jobKind)
	if err := w.api.Get(w.Context(), client.ObjectKey{Namespace: given.Namespace, Name: name}, job); err != nil {
		w.Fatal(err)
	}
	job.Object["status"] = map[string]any{"conditions": []any{map[string]any{"type": condition, "status": "True"}}}
	if err := w.api.Status().Update(w.Context(), job); err != nil {
		w.Fatal(err)
	}
}

func (w *world) changeJob(name string, change func(*unstructured.Unstructured)) {
	w.Helper()
	job := &unstructured.Unstructured{}
	job.SetGroupVersionKind(jobKind)
	if err := w.api.Get(w.Context(), client.ObjectKey{Namespace: given.Namespace, Name: name}, job); err != nil {
		w.Fatal(err)
	}
	change(job)
	if err := w.api.Update(w.Context(), job); err != nil {
		w.Fatal(err)
	}
}

func (w *world) setPodPhase(name string, phase corev1.PodPhase) {
	w.Helper()
	pod := &corev1.Pod{}
	if err := w.api.Get(w.Context(), client.ObjectKey{Namespace: given.Namespace, Name: name}, pod); err != nil {
		w.Fatal(err)
	}
	pod.Status.Phase = phase
	if err := w.api.Status().Update(w.Context(), pod); err != nil {
		w.Fatal(err)
	}
}

func pod(name string, phase corev1.PodPhase) *corev1.Pod {
	p := &corev1.Pod{}
	p.Name, p.Namespace, p.UID = name, given.Namespace, "uid-of-pod"
	p.Labels = map[string]string{v1beta2.AppWrapperLabel: "a", v1beta2.AppWrapperComponentLabel: "0"}
	p.Status.Phase = phase
	return p
}

// job is a Job as the API server has it, controlled by the owner unless that is empty.
func job(name, owner string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(jobKind)
	object.SetName(name)
	object.SetNamespace(given.Namespace)
	object.SetUID("uid-of-job")
	if owner != "" {
		aw := &v1beta2.AppWrapper{}
		aw.Name, aw.UID = "a", given.AppWrapper(owner).Build().UID
		object.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(aw, v1beta2.GroupVersion.WithKind(v1beta2.AppWrapperKind))})
	}
	return object
}
