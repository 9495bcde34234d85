// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/mlbatch/mlbatch/tools/localcluster/plan"
)

// awaitKeeper returns when all programs of the plan are ready.
func (c *Cluster) awaitKeeper(ctx context.Context) error {
	var p plan.Plan
	if err := plan.Read(c.Dir(), plan.File, &p); err != nil {
		return err
	}
	patience := time.Now().Add(readyTimeout)
	return c.followKeeper(ctx, func(s plan.Status) (bool, error) {
		switch {
		case s.Revision != p.Revision:
			return false, nil // it has not read the plan yet
		case s.Error != "":
			return true, errors.New(s.Error)
		case s.Ready && len(s.Failing) > 0:
			return time.Now().After(patience), failing(s)
		}
		return s.Ready, nil
	})
}

// awaitPause returns when the keeper has done what it can, with or without success.
func (c *Cluster) awaitPause(ctx context.Context) error {
	return c.followKeeper(ctx, func(s plan.Status) (bool, error) { return s.Ready || s.Error != "", nil })
}

// failing names the programs that do not come back.
func failing(s plan.Status) error {
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(s.Failing)) {
		errs = append(errs, fmt.Errorf("%s does not come back: it %s, after %d restarts; %s.log may say why", name, s.Failing[name], s.Restarts[name], name))
	}
	return errors.Join(errs...)
}

// followKeeper prints what the keeper waits for until what it reports is enough.
func (c *Cluster) followKeeper(ctx context.Context, enough func(plan.Status) (bool, error)) error {
	var said string
	for {
		running := c.Running()
		var status plan.Status
		if plan.Read(c.Dir(), plan.StatusFile, &status) == nil {
			if done, err := enough(status); done {
				return err
			}
		}
		if !running {
			return errors.New(cmp.Or(status.Error, "the cluster's keeper ended; keeper.log may say why"))
		}
		if status.Waiting != said {
			said = status.Waiting
			fmt.Fprintf(c.progress, "starting %s\n", said)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
}
