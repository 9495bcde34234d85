// SPDX-License-Identifier: Apache-2.0

// Package othercontroller answers whether another AppWrapper controller is active in this
// cluster. Two of them would both create and delete components and count retries. As long as
// there is another, ours waits, as a replica waits for the leader. It serves the webhooks
// meanwhile, because otherwise nobody could create or change an AppWrapper.
//
// It does only what neither the check of mlbatch install nor leader election in one namespace
// can do: it looks across namespaces, for controllers that elect no leader, and for as long as
// they are active (docs/decisions/0010-one-controller-at-a-time.md).
package othercontroller

import (
	"cmp"
	"context"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// interval is how often to look until ours is active. It does not look afterwards.
const interval = 5 * time.Second

// sign names another controller that is active; empty is none.
type sign func(context.Context) (who string, err error)

// Own identifies this controller among others.
type Own struct {
	// Service of its webhooks.
	Service types.NamespacedName
	// Lease is the name that all AppWrapper controllers use for leader election; Elects is
	// whether this one does.
	Lease  string
	Elects bool
	// IgnoreOthers: it does not look for others.
	IgnoreOthers bool
}

// After runs begin once ready is closed, this process is the leader, and no other AppWrapper
// controller is active.
func After(ready <-chan struct{}, mgr manager.Manager, own Own, begin func() error) manager.Runnable {
	c := &candidate{ready: ready, begin: begin, log: mgr.GetLogger().WithName("othercontroller"), interval: interval}
	c.other = func(context.Context) (string, error) { return "", nil }
	if own.IgnoreOthers {
		return c
	}
	reader := mgr.GetAPIReader()
	c.other = signs{
		&leases{
			list: listLeases(reader, own.Lease), annotate: annotateLease(mgr.GetClient()), own: own.Service.Namespace, elects: own.Elects,
			now: time.Now, seen: map[types.NamespacedName]sighting{},
		},
		&webhooks{list: listConfigurations(reader), pod: runningPod(reader), own: own.Service, now: time.Now},
	}.other
	return c
}

// candidate waits for its turn. By default the manager starts it in the leader only.
type candidate struct {
	ready    <-chan struct{}
	other    sign
	begin    func() error
	log      logr.Logger
	interval time.Duration
}

// Start returns when begin has run, or when the process ends.
func (c *candidate) Start(ctx context.Context) error {
	select {
	case <-c.ready:
	case <-ctx.Done():
		return nil
	}
	return c.wait(ctx)
}

func (c *candidate) wait(ctx context.Context) error {
	for said := ""; ; {
		who, err := c.other(ctx)
		if err == nil && who == "" {
			return c.begin()
		}
		if ctx.Err() == nil && (err != nil || who != said) {
			c.report(who, err)
		}
		said = who
		select {
		case <-time.After(c.interval):
		case <-ctx.Done():
			return nil
		}
	}
}

func (c *candidate) report(who string, err error) {
	if err != nil {
		c.log.Error(err, "cannot check whether another AppWrapper controller is active: waiting until it can be checked, or until controllerManager.ignoreOtherControllers is set")
		return
	}
	c.log.Info("another AppWrapper controller is active: waiting until it is gone; uninstall it, "+
		"or set controllerManager.ignoreOtherControllers if it is not an AppWrapper controller", "other", who)
}

// signs are the two ways to find another controller.
type signs struct {
	leases   *leases
	webhooks *webhooks
}

// other names a controller that is active or is about to be.
func (s signs) other(ctx context.Context) (string, error) {
	seen, err := s.leases.look(ctx)
	if err != nil {
		return "", err
	}
	server, err := s.webhooks.server(ctx, seen.waiting)
	if err != nil {
		return "", err
	}
	seen, err = s.leases.giveWay(ctx, seen, server != "")
	if err != nil {
		return "", err
	}
	return cmp.Or(seen.other(), server), nil
}
