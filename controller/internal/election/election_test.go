// SPDX-License-Identifier: Apache-2.0

package election

import (
	"context"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/tools/leaderelection"
)

// A process that is killed gives nothing back.
func TestAContainerThatIsStartedAgainLeadsAtOnce(t *testing.T) {
	leases := fake.NewClientset().CoordinationV1()
	t.Setenv("POD_UID", "one")
	first := process(t, leases)
	if !first.leads(t) {
		t.Fatal("the first process does not lead, and there is no other")
	}
	first.kill()
	if again := process(t, leases); !again.leads(t) {
		t.Error("the same pod waits until its own Lease expires")
	}
	t.Setenv("POD_UID", "two")
	if other := process(t, leases); other.leads(t) {
		t.Error("another pod leads, though the Lease has not expired")
	}
}

func TestOutsideAPodEachProcessHasANameOfItsOwn(t *testing.T) {
	t.Setenv("POD_UID", "")
	first, err := identity()
	if err != nil {
		t.Fatal(err)
	}
	if second, err := identity(); err != nil || first == second {
		t.Errorf("two processes are %q and %q (%v)", first, second, err)
	}
}

// candidate is a process that wants to lead.
type candidate struct {
	lock    *Lock
	led     chan struct{}
	refused chan struct{}
	kill    context.CancelFunc
}

func process(t *testing.T, leases coordinationclient.LeasesGetter) *candidate {
	t.Helper()
	holder, err := identity()
	if err != nil {
		t.Fatal(err)
	}
	c := &candidate{lock: newLock(leases, metav1.ObjectMeta{Namespace: "mlbatch-system", Name: "lease"}, holder, time.Hour), led: make(chan struct{}), refused: make(chan struct{}, 1)}
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: c.lock, LeaseDuration: time.Hour, RenewDeadline: RenewDeadline(time.Hour), RetryPeriod: time.Millisecond,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(context.Context) { close(c.led) },
			OnStoppedLeading: func() {},
			OnNewLeader: func(name string) {
				if name != holder {
					c.refused <- struct{}{}
				}
			},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	var ctx context.Context
	ctx, c.kill = context.WithCancel(t.Context())
	t.Cleanup(c.kill)
	go elector.Run(ctx)
	return c
}

// leads waits until the process leads, or sees that another one does.
func (c *candidate) leads(t *testing.T) bool {
	t.Helper()
	select {
	case <-c.led:
		return true
	case <-c.refused:
		return false
	case <-t.Context().Done():
		return false
	}
}
