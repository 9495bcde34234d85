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
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/mlbatch/mlbatch/controller/internal/accessreview"
)

// It looks soon again at first, because a platform that is installed at once is complete within seconds, and then
// rarely: Kueue may never come.
const (
	firstPause = time.Second
	longest    = 30 * time.Second
)

// Needed is what a part reads, and how.
type Needed struct {
	schema.GroupVersionResource
	Verbs []string
}

// Then has mgr call begin once it has everything that is needed. Until then, a metric says that this part waits.
func Then(mgr ctrl.Manager, name string, begin func() error, needed ...Needed) error {
	waiting, err := newMetric(ctrlmetrics.Registry)
	if err != nil {
		return fmt.Errorf("cannot register metrics: %w", err)
	}
	return mgr.Add(&candidate{
		possible: func(ctx context.Context) (bool, error) {
			return possible(ctx, mgr.GetRESTMapper(), func(ctx context.Context, verb string, of schema.GroupVersionResource) (bool, error) {
				return accessreview.Self(ctx, mgr.GetClient(), "", verb, of)
			}, needed)
		},
		begin: begin, log: mgr.GetLogger().WithName(name), pause: firstPause, waits: waiting.of(name),
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
	pause    time.Duration
	// waits reports whether it still looks.
	waits func(bool)
}

var _ manager.Runnable = &candidate{}

// Start returns when begin has run, or when the process ends. It never looks again after begin.
func (c *candidate) Start(ctx context.Context) error {
	c.waits(true)
	for pause := c.pause; ; pause = min(2*pause, longest) {
		possible, err := c.possible(ctx)
		if possible {
			err := c.begin()
			c.waits(err != nil)
			return err
		}
		if err != nil && ctx.Err() == nil {
			c.log.Error(err, "cannot check what can be watched")
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil
		}
	}
}
