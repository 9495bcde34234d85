// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/mlbatch/mlbatch/controller/internal/deactivation"
	"github.com/mlbatch/mlbatch/controller/internal/preemptionpause"
	"github.com/mlbatch/mlbatch/controller/quotareason"
	"github.com/mlbatch/mlbatch/test/fakeapiserver"
	"github.com/mlbatch/mlbatch/test/patience"
)

// start runs the whole controller with an API server that serves these kinds, until the test ends.
func start(t *testing.T, pause preemptionpause.Pause, kinds ...schema.GroupVersionKind) *fakeapiserver.Server {
	t.Helper()
	return startWith(t, pause, &Evictions{}, kinds...)
}

// store puts a Workload on the API server.
func store(t *testing.T, api *fakeapiserver.Server, w *kueue.Workload) {
	t.Helper()
	text, err := json.Marshal(w)
	if err == nil {
		err = api.Put(text)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func startWith(t *testing.T, pause preemptionpause.Pause, evictions *Evictions, kinds ...schema.GroupVersionKind) *fakeapiserver.Server {
	t.Helper()
	api := fakeapiserver.Start(kinds...)
	t.Cleanup(api.Stop)
	manage(t, api, pause, evictions)
	return api
}

// manage runs the whole controller with an API server.
func manage(t *testing.T, api *fakeapiserver.Server, pause preemptionpause.Pause, evictions *Evictions) {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{kueue.AddToScheme, authorizationv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	var elected <-chan struct{}
	api.Manage(t, ctrl.Options{Scheme: scheme}, func(mgr ctrl.Manager) error {
		elected = mgr.Elected()
		return Setup(mgr, Settings{Pause: pause, Avoid: byLabel}, evictions)
	})
	<-elected
}

func TestTheControllerPausesWork(t *testing.T) {
	api := start(t, preemptionpause.Default(), kueue.SchemeGroupVersion.WithKind("Workload"))
	w := newCluster(t, 3).stored()
	w.SetGroupVersionKind(kueue.SchemeGroupVersion.WithKind("Workload"))
	now := metav1.Now()
	w.Status.Conditions[0].LastTransitionTime = now
	store(t, api, w)
	var status kueue.WorkloadStatus
	err := patience.PollFor(t.Context(), 10*time.Millisecond, patience.Short, func(context.Context) (bool, error) {
		err := json.Unmarshal(api.Get("workloads", key).Fields["status"], &status)
		return status.RequeueState != nil, err
	})
	if err != nil || status.RequeueState.RequeueAt.Unix() != now.Add(time.Minute).Unix() {
		t.Errorf("%+v, %v; the requests were %v", status.RequeueState, err, api.Requests())
	}
}

// What was idle may be activated again, whether or not there are pauses: Kueue leaves our condition, and would
// deactivate it at once.
func TestAnIdleWorkloadIsForgottenWithoutPauses(t *testing.T) {
	api := start(t, preemptionpause.Pause{}, kueue.SchemeGroupVersion.WithKind("Workload"))
	w := newCluster(t, 0).stored()
	w.SetGroupVersionKind(kueue.SchemeGroupVersion.WithKind("Workload"))
	w.Spec.Active = new(false)
	now := metav1.Now()
	w.Status.Conditions = []metav1.Condition{
		{Type: kueue.WorkloadEvicted, Status: metav1.ConditionTrue, Reason: kueue.WorkloadDeactivated, LastTransitionTime: now},
		{Type: kueue.WorkloadDeactivationTarget, Status: metav1.ConditionTrue, Reason: deactivation.Reason, LastTransitionTime: now},
	}
	store(t, api, w)
	var status kueue.WorkloadStatus
	err := patience.PollFor(t.Context(), 10*time.Millisecond, patience.Short, func(context.Context) (bool, error) {
		status = kueue.WorkloadStatus{}
		err := json.Unmarshal(api.Get("workloads", key).Fields["status"], &status)
		return len(status.Conditions) == 1, err
	})
	if err != nil {
		t.Errorf("%+v, %v; the requests were %v", status.Conditions, err, api.Requests())
	}
}

// The manager runs on without Kueue.
func TestTheControllerRunsWithoutKueue(t *testing.T) {
	start(t, preemptionpause.Default())
}

// woken is the queue of the AppWrapper controller.
func woken(t *testing.T, e *Evictions) workqueue.TypedRateLimitingInterface[reconcile.Request] {
	t.Helper()
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	t.Cleanup(queue.ShutDown)
	if err := e.Start(t.Context(), queue); err != nil {
		t.Fatal(err)
	}
	return queue
}

// adds counts what is added to a queue, which keeps one of many.
type adds struct {
	workqueue.TypedRateLimitingInterface[reconcile.Request]
	count atomic.Int32
}

func (a *adds) Add(request reconcile.Request) {
	a.TypedRateLimitingInterface.Add(request)
	a.count.Add(1)
}

const waitingWorkload = `{"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "Workload",
	"metadata": {"name": "w", "namespace": "red", "uid": "u", "ownerReferences": [
		{"apiVersion": "workload.codeflare.dev/v1beta2", "kind": "AppWrapper", "name": "train", "uid": "of-train", "controller": true}]},
	"status": {"conditions": [
		{"type": "QuotaReserved", "status": "RESERVED", "reason": "Pending", "message": "MESSAGE", "lastTransitionTime": "2026-01-01T00:00:00Z"}]}}`

// A message with other numbers wakes nobody.
func TestAnAppWrapperIsWokenWhenItWaitsForAnotherReason(t *testing.T) {
	evictions := &Evictions{}
	queue := &adds{TypedRateLimitingInterface: woken(t, evictions)}
	if err := evictions.Start(t.Context(), queue); err != nil {
		t.Fatal(err)
	}
	if reason, err := evictions.Waits(t.Context(), "of-train"); reason != "" || err != nil {
		t.Errorf("before Workloads are watched: %q, %v", reason, err)
	}
	api := fakeapiserver.Start(kueue.SchemeGroupVersion.WithKind("Workload"))
	t.Cleanup(api.Stop)
	first := strings.NewReplacer("RESERVED", "False", "MESSAGE", "insufficient unused quota for cpu in flavor a, 2 more needed").Replace(waitingWorkload)
	if err := api.Put([]byte(first)); err != nil {
		t.Fatal(err)
	}
	manage(t, api, preemptionpause.Pause{}, evictions)
	// It is woken by the first list, and once more when all Workloads are known.
	err := patience.PollFor(t.Context(), 10*time.Millisecond, patience.Short, func(context.Context) (bool, error) { return queue.count.Load() == 2, nil })
	if err != nil {
		t.Fatalf("%v, it was woken %d times", err, queue.count.Load())
	}
	for queue.Len() > 0 {
		request, _ := queue.Get()
		queue.Done(request)
	}
	for i, step := range []struct {
		reserved, message string
		want              quotareason.Reason
		wakes             int
	}{
		{"False", "insufficient unused quota for cpu in flavor a, 3 more needed", quotareason.WaitingForQuota, 0},
		{"False", "insufficient quota for cpu in flavor a, maximum capacity (8)", quotareason.ExceedsMaxQuota, 1},
		{"True", "", "", 0},
	} {
		text := strings.NewReplacer("RESERVED", step.reserved, "MESSAGE", step.message, `"u"`, fmt.Sprintf(`"u%d"`, i)).Replace(waitingWorkload)
		if err := api.Put([]byte(text)); err != nil {
			t.Fatal(err)
		}
		err := patience.PollFor(t.Context(), 10*time.Millisecond, patience.Short, func(ctx context.Context) (bool, error) {
			got, err := evictions.Waits(ctx, "of-train")
			return got == step.want && queue.Len() >= step.wakes && evictions.has(t, fmt.Sprintf("u%d", i)), err
		})
		if err != nil || queue.Len() != step.wakes {
			t.Fatalf("%+v: %v, %d are woken", step, err, queue.Len())
		}
		if step.wakes > 0 {
			request, _ := queue.Get()
			queue.Done(request)
		}
	}
}

// has tells whether the cache has the Workload with this UID.
func (e *Evictions) has(t *testing.T, uid string) bool {
	t.Helper()
	all, err := e.workloads(t.Context(), "of-train")
	if err != nil {
		t.Fatal(err)
	}
	return len(all) == 1 && string(all[0].UID) == uid
}

const evictedWorkload = `{"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "Workload",
	"metadata": {"name": "w", "namespace": "red", "uid": "u", "ownerReferences": [
		{"apiVersion": "workload.codeflare.dev/v1beta2", "kind": "KIND", "name": "train", "uid": "of-train", "controller": true}]},
	"status": {"conditions": [
		{"type": "QuotaReserved", "status": "True", "reason": "QuotaReserved", "message": "", "lastTransitionTime": "2026-01-01T00:01:00Z"},
		{"type": "Evicted", "status": "EVICTED", "reason": "Preempted", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"},
		{"type": "Finished", "status": "FINISHED", "reason": "Succeeded", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}]}}`

func TestAnAppWrapperIsWokenWhenItIsEvictedAndWhenItIsAdmittedAgain(t *testing.T) {
	evictions := &Evictions{}
	queue := woken(t, evictions)
	if evicted, err := evictions.Evicted(t.Context(), "of-train"); evicted || err != nil {
		t.Errorf("before Workloads are watched: %t, %v", evicted, err)
	}
	api := startWith(t, preemptionpause.Pause{}, evictions, kueue.SchemeGroupVersion.WithKind("Workload"))
	for _, step := range []struct {
		kind, evicted, finished string
		want                    bool
		wakes                   int
	}{
		{"AppWrapper", "False", "False", false, 0},
		{"AppWrapper", "True", "False", true, 1},
		{"AppWrapper", "False", "False", false, 1}, // admitted again
		{"AppWrapper", "True", "False", true, 1},
		{"AppWrapper", "True", "True", false, 1},
		{"PyTorchJob", "True", "False", false, 0}, // of others
	} {
		text := strings.NewReplacer("KIND", step.kind, "EVICTED", step.evicted, "FINISHED", step.finished).Replace(evictedWorkload)
		if err := api.Put([]byte(text)); err != nil {
			t.Fatal(err)
		}
		err := patience.PollFor(t.Context(), 10*time.Millisecond, patience.Short, func(ctx context.Context) (bool, error) {
			got, err := evictions.Evicted(ctx, "of-train")
			return got == step.want && queue.Len() >= step.wakes, err
		})
		if err != nil {
			t.Fatalf("%+v: %v, %d are woken", step, err, queue.Len())
		}
		if step.wakes > 0 {
			request, _ := queue.Get()
			queue.Done(request)
			if want := (types.NamespacedName{Namespace: "red", Name: "train"}); request.NamespacedName != want {
				t.Errorf("%+v wakes %s", step, request)
			}
		}
	}
	if queue.Len() > 0 {
		t.Errorf("%d more are woken", queue.Len())
	}
}

func TestSinceWhenQuotaIsReserved(t *testing.T) {
	evictions := &Evictions{}
	if since, err := evictions.ReservedSince(t.Context(), "of-train"); !since.IsZero() || err != nil {
		t.Errorf("before Workloads are watched: %s, %v", since, err)
	}
	api := startWith(t, preemptionpause.Pause{}, evictions, kueue.SchemeGroupVersion.WithKind("Workload"))
	reserved := strings.NewReplacer("KIND", "AppWrapper", "EVICTED", "False", "FINISHED", "False").Replace(evictedWorkload)
	released := strings.Replace(reserved, `"QuotaReserved", "status": "True"`, `"QuotaReserved", "status": "False"`, 1)
	for _, step := range []struct {
		workload string
		want     time.Time
	}{
		{reserved, time.Date(2026, 1, 1, 0, 1, 0, 0, time.UTC)},
		{released, time.Time{}},
	} {
		if err := api.Put([]byte(step.workload)); err != nil {
			t.Fatal(err)
		}
		var since time.Time
		err := patience.PollFor(t.Context(), 10*time.Millisecond, patience.Short, func(ctx context.Context) (_ bool, err error) {
			since, err = evictions.ReservedSince(ctx, "of-train")
			return since.Equal(step.want), err
		})
		if err != nil {
			t.Fatalf("%v: since %s, want %s", err, since, step.want)
		}
	}
}
