// SPDX-License-Identifier: Apache-2.0

// Package watchable starts parts of the controller as soon as what they watch is served, and they
// may watch it. That may be after the controller has started, or never. Otherwise an informer would
// hang, and end the process.
package watchable

import (
	"context"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/mlbatch/mlbatch/controller/internal/accessreview"
)

// interval is how often to look, until it is so.
const interval = 30 * time.Second

// Needed is what a part reads, and how.
type Needed struct {
	schema.GroupVersionResource
	Verbs []string
}

// Then has mgr call begin once it has everything that is needed.
func Then(mgr ctrl.Manager, name string, begin func() error, needed ...Needed) error {
	return mgr.Add(&candidate{
		possible: func(ctx context.Context) (bool, error) {
			return possible(ctx, mgr.GetRESTMapper(), func(ctx context.Context, verb string, of schema.GroupVersionResource) (bool, error) {
				return accessreview.Self(ctx, mgr.GetClient(), "", verb, of)
			}, needed)
		},
		begin: begin, log: mgr.GetLogger().WithName(name), interval: interval,
	})
}

type review func(ctx context.Context, verb string, of schema.GroupVersionResource) (bool, error)

func possible(ctx context.Context, mapper meta.RESTMapper, allowed review, needed []Needed) (bool, error) {
	for _, n := range needed {
		_, err := mapper.KindFor(n.GroupVersionResource)
		if meta.IsNoMatchError(err) {
			return false, nil
		}
		if err != nil {
			return false, fmt.Errorf("cannot find %s: %w", n.GroupResource(), err)
		}
		for _, verb := range n.Verbs {
			if allowed, err := allowed(ctx, verb, n.GroupVersionResource); err != nil || !allowed {
				return false, err
			}
		}
	}
	return true, nil
}

// candidate waits until it is possible.
type candidate struct {
	possible func(context.Context) (bool, error)
	begin    func() error
	log      logr.Logger
	interval time.Duration
}

var _ manager.Runnable = &candidate{}

// Start returns when begin has run, or when the process ends.
func (c *candidate) Start(ctx context.Context) error {
	for {
		possible, err := c.possible(ctx)
		if possible {
			return c.begin()
		}
		if err != nil && ctx.Err() == nil {
			c.log.Error(err, "cannot check what can be watched")
		}
		select {
		case <-time.After(c.interval):
		case <-ctx.Done():
			return nil
		}
	}
}
