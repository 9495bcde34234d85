// SPDX-License-Identifier: Apache-2.0

// Package election is how one of several replicas leads: by a Lease that its pod holds, and without
// writing once the Lease may be another's.
package election

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// RenewDeadline is how long a leader tries to renew a Lease of this duration until it gives up: 10 of
// 15 seconds, as controller-runtime does.
func RenewDeadline(duration time.Duration) time.Duration { return duration * 2 / 3 }

// RetryPeriod is how often a Lease of this duration is renewed: every 2 of 15 seconds.
func RetryPeriod(duration time.Duration) time.Duration { return duration * 2 / 15 }

// Lock is a Lease, which remembers how long it is this process's for sure.
type Lock struct {
	resourcelock.Interface
	duration time.Duration
	now      func() time.Time
	// renewed is when the last request that renewed the Lease was sent; nil before the first.
	renewed atomic.Pointer[time.Time]
	// over is set from when the Lease is given back until it is renewed.
	over atomic.Bool
}

// New returns the lock of a Lease. Its requests bypass what New adds to client: the lock's Fence,
// through which all other requests pass.
func New(client *rest.Config, namespace, name string, duration time.Duration) (*Lock, error) {
	own := rest.AddUserAgent(rest.CopyConfig(client), "leader-election")
	own.Timeout = max(RenewDeadline(duration)/2, time.Second) // so that one slow answer does not cost the Lease
	leases, err := coordinationclient.NewForConfig(own)
	if err != nil {
		return nil, fmt.Errorf("cannot make the client of the Lease: %w", err)
	}
	holder, err := identity()
	if err != nil {
		return nil, err
	}
	l := newLock(leases, metav1.ObjectMeta{Namespace: namespace, Name: name}, holder, duration)
	client.Wrap(l.fence)
	return l, nil
}

func newLock(leases coordinationclient.LeasesGetter, lease metav1.ObjectMeta, holder string, duration time.Duration) *Lock {
	return &Lock{duration: duration, now: time.Now, Interface: &resourcelock.LeaseLock{
		LeaseMeta: lease, Client: leases, LockConfig: resourcelock.ResourceLockConfig{Identity: holder},
	}}
}

// identity is the pod's, so that a container that is started again has the Lease of the one that was
// killed, at once: the kubelet never runs two. Outside a pod it is the process's.
func identity() (string, error) {
	host, err := os.Hostname()
	if err != nil {
		return "", fmt.Errorf("cannot name the holder of the Lease: %w", err)
	}
	if uid := os.Getenv("POD_UID"); uid != "" {
		return host + "_" + uid, nil
	}
	return host + "_" + string(uuid.NewUUID()), nil
}

// Create takes a Lease that nobody has had.
func (l *Lock) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.write(ctx, record, l.Interface.Create)
}

// Update takes, renews or gives back the Lease.
func (l *Lock) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.write(ctx, record, l.Interface.Update)
}

// mayGiveBack also ends all writes: whatever the answer is, another may have the Lease. A leader that could not
// renew its Lease for long may have requests under way, which end with the Lease and not before.
func (l *Lock) mayGiveBack() error {
	l.over.Store(true)
	renewed := l.renewed.Load()
	if renewed == nil || elapsed(*renewed, l.now()) < RenewDeadline(l.duration) {
		return nil
	}
	return errors.New("the Lease is not given back, because requests may be under way: it runs out")
}

func (l *Lock) write(ctx context.Context, record resourcelock.LeaderElectionRecord, write func(context.Context, resourcelock.LeaderElectionRecord) error) error {
	sent := l.now()
	if record.HolderIdentity == "" {
		if err := l.mayGiveBack(); err != nil {
			return err
		}
	}
	err := write(ctx, record)
	if err == nil && record.HolderIdentity != "" {
		l.renewed.Store(&sent)
		l.over.Store(false)
	}
	return err
}
