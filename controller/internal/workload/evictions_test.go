// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"encoding/json"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/mlbatch/mlbatch/controller/quotareason"
	"github.com/mlbatch/mlbatch/test/patience"
)

// beginning is a watch that does not know all Workloads yet.
type beginning struct {
	toolscache.ResourceEventHandlerRegistration
	over atomic.Bool
}

func (b *beginning) HasSynced() bool { return b.over.Load() }

// The watch of Workloads begins when Kueue is there, which may be after its first Workloads.
func TestWhoWasLookedAtBeforeAllWorkloadsWereKnownIsWokenAgain(t *testing.T) {
	w := &kueue.Workload{}
	text := strings.NewReplacer("RESERVED", "False", "MESSAGE", "insufficient unused quota for cpu in flavor a, 2 more needed").Replace(waitingWorkload)
	scheme := runtime.NewScheme()
	if err := json.Unmarshal([]byte(text), w); err != nil {
		t.Fatal(err)
	}
	if err := kueue.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	watched := &beginning{}
	evictions := &Evictions{cached: fake.NewClientBuilder().WithScheme(scheme).WithIndex(&kueue.Workload{}, byOwner, ownerOf).WithObjects(w).Build(), watched: watched}
	queue := woken(t, evictions)
	evictions.wake(nil, w)
	request, _ := queue.Get()
	if reason, err := evictions.Waits(t.Context(), "of-train"); reason != "" || err != nil {
		t.Errorf("before all Workloads are known: %q, %v", reason, err)
	}
	queue.Done(request)

	caughtUp := make(chan error, 1)
	go func() { caughtUp <- evictions.catchUp(t.Context()) }()
	watched.over.Store(true)
	err := patience.PollFor(t.Context(), 10*time.Millisecond, patience.Short, func(context.Context) (bool, error) { return queue.Len() == 1, nil })
	if reason, unread := evictions.Waits(t.Context(), "of-train"); err != nil || unread != nil || reason != quotareason.WaitingForQuota {
		t.Errorf("%q, %v; %v", reason, unread, err)
	}
	if err := <-caughtUp; err != nil {
		t.Error(err)
	}
}

// The cache keeps what tells borrowed quota from a preemption within a queue.
func TestWhichWorkHasBorrowedWhatOthersWantBack(t *testing.T) {
	for reason, want := range map[string]bool{
		kueue.InClusterQueueReason: false, kueue.InCohortReclamationReason: true,
		kueue.InCohortFairSharingReason: true, kueue.InCohortReclaimWhileBorrowingReason: true,
	} {
		w := &kueue.Workload{}
		w.Status.Conditions = []metav1.Condition{
			{Type: kueue.WorkloadEvicted, Status: metav1.ConditionTrue, Reason: kueue.WorkloadEvictedByPreemption},
			{Type: kueue.WorkloadPreempted, Status: metav1.ConditionTrue, Reason: reason},
		}
		cached, err := slim(w)
		if err != nil {
			t.Fatal(err)
		}
		if got := reclaimed(cached.(*kueue.Workload)); got != want {
			t.Errorf("%s: %t", reason, got)
		}
		w.Status.Conditions[0].Status = metav1.ConditionFalse
		if reclaimed(w) {
			t.Errorf("%s: it has been admitted again", reason)
		}
	}
}
