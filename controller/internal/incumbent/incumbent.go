// SPDX-License-Identifier: Apache-2.0

// Package incumbent answers whether another AppWrapper controller is at work in this
// cluster. Two of them would both create, delete and count: as long as there is another,
// ours waits, as a replica waits for the one that leads. It serves the webhooks
// meanwhile, because without an answer nobody could create or change an AppWrapper.
package incumbent

import (
	"cmp"
	"context"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// interval is how often to look until work begins. Nobody looks afterwards.
const interval = 5 * time.Second

// sign tells who else is at work; empty is nobody.
type sign func(context.Context) (who string, err error)

// Own is by what this controller is told from others.
type Own struct {
	// Service of its webhooks.
	Service types.NamespacedName
	// Lease is the name of the one by which it and others elect a leader; Elects is whether it does.
	Lease  string
	Elects bool
	// IgnoreOthers: it works whoever else does.
	IgnoreOthers bool
}

// After runs begin when ready is closed, this process leads, and no other AppWrapper
// controller is at work.
func After(ready <-chan struct{}, mgr manager.Manager, own Own, begin func() error) manager.Runnable {
	c := &candidate{ready: ready, begin: begin, log: mgr.GetLogger().WithName("incumbent"), interval: interval}
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

// candidate waits for its turn. That the manager starts it only where it leads is the
// default.
type candidate struct {
	ready    <-chan struct{}
	other    sign
	begin    func() error
	log      logr.Logger
	interval time.Duration
}

// Start returns when the work has begun, or the process ends.
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
		c.log.Error(err, "cannot tell whether another AppWrapper controller is at work, and waits until it can or controllerManager.ignoreOtherControllers is set")
		return
	}
	c.log.Info("another AppWrapper controller is at work: this one does nothing until that is gone; uninstall it, "+
		"or set controllerManager.ignoreOtherControllers if it is none", "other", who)
}

// signs are two by which another controller is known.
type signs struct {
	leases   *leases
	webhooks *webhooks
}

// other is who else is at work, or is about to begin.
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
