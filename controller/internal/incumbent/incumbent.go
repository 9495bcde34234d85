// SPDX-License-Identifier: Apache-2.0

// Package incumbent answers whether another AppWrapper controller is at work in this
// cluster. Two of them would both create, delete and count: as long as there is another,
// ours waits, as a replica waits for the one that leads. It serves the webhooks
// meanwhile, because without an answer nobody could create or change an AppWrapper.
package incumbent

import (
	"context"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// interval is how often to look while another controller is at work. Nobody looks
// afterwards.
const interval = 5 * time.Second

// sign tells who else is at work; empty is nobody.
type sign func(context.Context) (who string, err error)

// After runs begin when ready is closed, this process leads, and no other AppWrapper
// controller is at work. Ours is known by the Service of its webhooks.
func After(ready <-chan struct{}, mgr manager.Manager, lease string, own types.NamespacedName, begin func() error) manager.Runnable {
	reader := mgr.GetAPIReader()
	leases := &leases{list: listLeases(reader, lease), own: own.Namespace, now: time.Now, seen: map[types.NamespacedName]sighting{}}
	webhooks := &webhooks{list: listConfigurations(reader), pod: runningPod(reader), own: own}
	return &candidate{
		ready: ready, begin: begin, log: mgr.GetLogger().WithName("incumbent"),
		signs: []sign{leases.holder, webhooks.server}, interval: interval,
	}
}

// candidate waits for its turn. That the manager starts it only where it leads is the
// default.
type candidate struct {
	ready    <-chan struct{}
	signs    []sign
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
		c.log.Error(err, "cannot tell whether another AppWrapper controller is at work, and waits until it can")
		return
	}
	c.log.Info("another AppWrapper controller is at work: this one does nothing until that is gone; uninstall it", "other", who)
}

// other is who else is at work, by the first sign of it.
func (c *candidate) other(ctx context.Context) (string, error) {
	for _, sign := range c.signs {
		if who, err := sign(ctx); err != nil || who != "" {
			return who, err
		}
	}
	return "", nil
}
