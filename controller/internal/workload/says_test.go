// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/quotareason"
)

// evictedFor is a cached Workload that was evicted for this reason, unless it is empty.
func evictedFor(t *testing.T, reason string, active bool, annotations ...string) *kueue.Workload {
	t.Helper()
	w := &kueue.Workload{}
	w.Name, w.Annotations = "w", map[string]string{}
	w.OwnerReferences = []metav1.OwnerReference{{Kind: v1beta2.AppWrapperKind, Name: "train", UID: types.UID("of-train"), Controller: ptr.To(true)}}
	for _, key := range annotations {
		w.Annotations[key] = "[]"
	}
	w.Spec.Active = ptr.To(active)
	if reason != "" {
		w.Status.Conditions = []metav1.Condition{{Type: kueue.WorkloadEvicted, Status: metav1.ConditionTrue, Reason: reason}}
	}
	cached, err := slim(w)
	if err != nil {
		t.Fatal(err)
	}
	return cached.(*kueue.Workload)
}

func TestWhatAWorkloadSaysOfQuota(t *testing.T) {
	const tooLong = "DeactivatedDueToMaximumExecutionTimeExceeded"
	ended := evictedFor(t, "Preempted", true)
	ended.Status.Conditions = append(ended.Status.Conditions, metav1.Condition{Type: kueue.WorkloadFinished, Status: metav1.ConditionTrue})
	for name, row := range map[string]struct {
		w    *kueue.Workload
		want quotareason.Word
	}{
		"nothing":                       {evictedFor(t, "", true), quotareason.Word{Known: true}},
		"it was preempted":              {evictedFor(t, "Preempted", true), quotareason.Word{Known: true, Evicted: "Preempted"}},
		"it has ended":                  {ended, quotareason.Word{Known: true}},
		"somebody has deactivated it":   {evictedFor(t, "Deactivated", false), quotareason.Word{Known: true, Evicted: "Deactivated", Deactivated: "Deactivated"}},
		"deactivated while it waits":    {evictedFor(t, "", false), quotareason.Word{Known: true, Deactivated: "Deactivated"}},
		"preempted, and then":           {evictedFor(t, "Preempted", false), quotareason.Word{Known: true, Evicted: "Preempted", Deactivated: "Deactivated"}},
		"it has run for too long":       {evictedFor(t, tooLong, false), quotareason.Word{Known: true, Evicted: tooLong, Deactivated: tooLong}},
		"activated again":               {evictedFor(t, tooLong, true), quotareason.Word{Known: true, Evicted: tooLong}},
		"we ask for other nodes":        {evictedFor(t, "Deactivated", false, v1beta2.ReassignAnnotation), quotareason.Word{Known: true, Evicted: "NodesReassigned"}},
		"too long meanwhile":            {evictedFor(t, tooLong, false, v1beta2.ReassignAnnotation), quotareason.Word{Known: true, Evicted: tooLong, Deactivated: tooLong}},
		"we have asked for others":      {evictedFor(t, "Deactivated", true, v1beta2.ReassignedAnnotation), quotareason.Word{Known: true, Evicted: "NodesReassigned"}},
		"and then somebody deactivates": {evictedFor(t, "Deactivated", false, v1beta2.ReassignedAnnotation), quotareason.Word{Known: true, Evicted: "Deactivated", Deactivated: "Deactivated"}},
		"preempted after other nodes":   {evictedFor(t, "Preempted", true, v1beta2.ReassignedAnnotation), quotareason.Word{Known: true, Evicted: "Preempted"}},
	} {
		if got := says(row.w); got != row.want {
			t.Errorf("%s: %+v, want %+v", name, got, row.want)
		}
	}
}

// Otherwise the condition Deactivated would stay until something else happens.
func TestWorkThatIsActivatedAgainIsWoken(t *testing.T) {
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	defer queue.ShutDown()
	e := &Evictions{queue: queue}
	off, on := evictedFor(t, "Deactivated", false), evictedFor(t, "Deactivated", true)
	e.wake(off, off)
	if queue.Len() != 0 {
		t.Error("it is woken although nothing has changed")
	}
	if e.wake(off, on); queue.Len() != 1 {
		t.Error("it is not woken")
	}
}
