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
	deadline := time.Now().Add(readyTimeout)
	return c.followKeeper(ctx, func(s plan.Status) (bool, error) {
		switch {
		case s.Revision != p.Revision:
			return false, nil // the keeper has not read this plan yet
		case s.Error != "":
			return true, errors.New(s.Error)
		case s.Ready && len(s.Failing) > 0:
			return time.Now().After(deadline), failing(s)
		}
		return s.Ready, nil
	})
}

// awaitSettled returns when the keeper has carried out its plan or failed to.
func (c *Cluster) awaitSettled(ctx context.Context) error {
	return c.followKeeper(ctx, func(s plan.Status) (bool, error) { return s.Ready || s.Error != "", nil })
}

// failing names the programs that keep failing.
func failing(s plan.Status) error {
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(s.Failing)) {
		errs = append(errs, fmt.Errorf("%s keeps failing: it %s after %d restarts; see %s.log", name, s.Failing[name], s.Restarts[name], name))
	}
	return errors.Join(errs...)
}

// followKeeper prints what the keeper waits for until its status is enough.
func (c *Cluster) followKeeper(ctx context.Context, enough func(plan.Status) (bool, error)) error {
	var printed string
	for {
		running := c.Running()
		var status plan.Status
		if plan.Read(c.Dir(), plan.StatusFile, &status) == nil {
			if done, err := enough(status); done {
				return err
			}
		}
		if !running {
			return errors.New(cmp.Or(status.Error, "the cluster's keeper exited; see keeper.log"))
		}
		if status.Waiting != printed {
			printed = status.Waiting
			fmt.Fprintf(c.progress, "starting %s\n", printed)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
}
