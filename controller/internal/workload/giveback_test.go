// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/mlbatch/mlbatch/controller/internal/deactivation"
	"github.com/mlbatch/mlbatch/controller/internal/preemptionpause"
	"github.com/mlbatch/mlbatch/test/fakeapiserver"
	"github.com/mlbatch/mlbatch/test/patience"
)

// What Kueue does between the two is in its workload controller: it deactivates the Workload and evicts it.
func TestIdleQuotaIsRequestedUntilKueueHasIt(t *testing.T) {
	evictions := &Evictions{}
	if err := evictions.GiveBack(t.Context(), "of-train", "why"); err != nil {
		t.Errorf("before Workloads are watched: %v", err)
	}
	api := startWith(t, preemptionpause.Default(), evictions, kueue.SchemeGroupVersion.WithKind("Workload"))
	reserved := strings.NewReplacer("KIND", "AppWrapper", "EVICTED", "False", "FINISHED", "False").Replace(evictedWorkload)
	if err := api.Put([]byte(reserved)); err != nil {
		t.Fatal(err)
	}
	untilSaid(t, api, "the quota is requested", func(ctx context.Context, w *kueue.Workload) (bool, error) {
		return deactivation.Requested(w), evictions.GiveBack(ctx, "of-train", "why")
	})
	w := stored(t, api)
	if c := meta.FindStatusCondition(w.Status.Conditions, kueue.WorkloadDeactivationTarget); c.Message != "why" {
		t.Errorf("it says %+v", c)
	}
	meta.FindStatusCondition(w.Status.Conditions, kueue.WorkloadEvicted).Status = "True"
	say(t, api, w)
	untilSaid(t, api, "the request is removed", func(_ context.Context, w *kueue.Workload) (bool, error) { return !deactivation.Requested(w), nil })
	w = stored(t, api)
	meta.SetStatusCondition(&w.Status.Conditions, metav1.Condition{Type: kueue.WorkloadRequeued, Status: metav1.ConditionFalse, Reason: "DeactivatedDueToIdle"})
	say(t, api, w)
	untilSaid(t, api, "Kueue may queue it again", func(_ context.Context, w *kueue.Workload) (bool, error) {
		return meta.FindStatusCondition(w.Status.Conditions, kueue.WorkloadRequeued).Reason == kueue.WorkloadDeactivated, nil
	})
}

// say stores the conditions of a Workload that Kueue has deactivated.
func say(t *testing.T, api *fakeapiserver.Server, w *kueue.Workload) {
	t.Helper()
	conditions, err := json.Marshal(w.Status.Conditions)
	if err == nil {
		err = api.Patch("workloads", key, fmt.Sprintf(`{"spec": {"active": false}, "status": {"conditions": %s}}`, conditions))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// stored has the status of the Workload.
func stored(t *testing.T, api *fakeapiserver.Server) *kueue.Workload {
	t.Helper()
	w := &kueue.Workload{}
	if err := json.Unmarshal(api.Get("workloads", key).Fields["status"], &w.Status); err != nil {
		t.Fatal(err)
	}
	return w
}

func untilSaid(t *testing.T, api *fakeapiserver.Server, what string, said func(context.Context, *kueue.Workload) (bool, error)) {
	t.Helper()
	err := patience.PollFor(t.Context(), 10*time.Millisecond, patience.Short, func(ctx context.Context) (bool, error) {
		return said(ctx, stored(t, api))
	})
	if err != nil {
		t.Fatal(fmt.Errorf("%s: %w; the requests were %v", what, err, api.Requests()))
	}
}
