// SPDX-License-Identifier: Apache-2.0

package othercontroller

import (
	"context"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	coordination "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/mlbatch/mlbatch/test/patience"
)

// elected gives client-go's elector the Leases of an API server in memory that, unlike
// client-go's fake, refuses an update of an old version.
type elected struct {
	coordination.LeaseInterface
	api client.Client
}

func (e elected) Leases(string) coordination.LeaseInterface { return e }

func (e elected) Get(ctx context.Context, name string, _ metav1.GetOptions) (*coordinationv1.Lease, error) {
	lease := &coordinationv1.Lease{}
	return lease, e.api.Get(ctx, client.ObjectKey{Namespace: "own", Name: name}, lease)
}

func (e elected) Create(ctx context.Context, lease *coordinationv1.Lease, _ metav1.CreateOptions) (*coordinationv1.Lease, error) {
	made := lease.DeepCopy()
	return made, e.api.Create(ctx, made)
}

func (e elected) Update(ctx context.Context, lease *coordinationv1.Lease, _ metav1.UpdateOptions) (*coordinationv1.Lease, error) {
	written := lease.DeepCopy()
	return written, e.api.Update(ctx, written)
}

// lead starts to hold the Lease, and fails the test if it is lost early.
func (e elected) lead(t *testing.T) {
	t.Helper()
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: &resourcelock.LeaseLock{
			LeaseMeta: metav1.ObjectMeta{Namespace: "own", Name: id}, Client: e, LockConfig: resourcelock.ResourceLockConfig{Identity: "us"},
		},
		LeaseDuration: time.Hour, RenewDeadline: time.Minute, RetryPeriod: time.Millisecond,
		Callbacks: leaderelection.LeaderCallbacks{OnStartedLeading: func(context.Context) {}, OnStoppedLeading: func() {}},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		elector.Run(ctx)
		if ctx.Err() == nil {
			t.Error("the Lease was lost")
		}
	}()
	t.Cleanup(func() { end(); <-ended })
}

// renewed returns the Lease after a few more renewals.
func (e elected) renewed(t *testing.T) *coordinationv1.Lease {
	t.Helper()
	var lease *coordinationv1.Lease
	times := map[time.Time]bool{}
	err := patience.PollFor(t.Context(), time.Millisecond, patience.Short, func(ctx context.Context) (bool, error) {
		var err error
		lease, err = e.Get(ctx, id, metav1.GetOptions{})
		if err == nil {
			times[lease.Spec.RenewTime.Time] = true
		}
		return len(times) > 3, client.IgnoreNotFound(err)
	})
	if err != nil {
		t.Fatal(err)
	}
	return lease
}

func TestWhatIsWrittenInALeaseAndItsElectorBearEachOther(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := coordinationv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	e := elected{api: fake.NewClientBuilder().WithScheme(scheme).Build()}
	e.lead(t)
	annotate := annotateLease(e.api)
	for _, holder := range []*string{ptr.To("us"), nil} {
		if err := annotate(t.Context(), e.renewed(t), holder); err != nil {
			t.Fatal(err)
		}
		lease := e.renewed(t)
		held, transitions := ptr.Deref(lease.Spec.HolderIdentity, ""), *lease.Spec.LeaseTransitions
		if got := isWaiting(lease); got != (holder != nil) || held != "us" || transitions != 0 {
			t.Errorf("it waits: %t, in a Lease held by %q after %d transitions", got, held, transitions)
		}
	}
}
