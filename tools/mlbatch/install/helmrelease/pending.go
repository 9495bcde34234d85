// SPDX-License-Identifier: Apache-2.0

package helmrelease

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"helm.sh/helm/v3/pkg/release"
	"helm.sh/helm/v3/pkg/storage"
	"helm.sh/helm/v3/pkg/storage/driver"
	"k8s.io/apimachinery/pkg/util/wait"
)

// Helm works for seconds: it does not wait for pods. A record that is young may be of
// somebody who is at work, and is watched for longer than that.
const young, watched = time.Minute, 30 * time.Second

// FailInterrupted makes way for the next Apply where a command was killed
// while Helm worked: Helm takes the record that it left for a sign that somebody
// else is at work. A failed release can be upgraded, whatever of it exists.
func FailInterrupted(ctx context.Context, releases *storage.Storage, name string) error {
	last, err := releases.Last(name)
	if err != nil || !last.Info.Status.IsPending() {
		return nil
	}
	if err := CheckIdle(ctx, releases, last); err != nil {
		return err
	}
	last.SetStatus(release.StatusFailed, "the command was killed")
	if err := releases.Update(last); err != nil {
		return fmt.Errorf("cannot clear the record of an interrupted installation: %w", err)
	}
	return nil
}

// CheckIdle watches a record that is pending and young. It fails as soon as that changes.
func CheckIdle(ctx context.Context, releases *storage.Storage, seen *release.Release) error {
	if !seen.Info.Status.IsPending() || time.Since(seen.Info.LastDeployed.Time) >= young {
		return nil
	}
	err := wait.PollUntilContextTimeout(ctx, time.Second, watched, true, func(context.Context) (bool, error) {
		last, err := releases.Last(seen.Name)
		return err == nil && (last.Version != seen.Version || last.Info.Status != seen.Info.Status), nil
	})
	if err == nil {
		return Busy(seen.Name)
	}
	return ctx.Err()
}

func Busy(name string) error {
	return fmt.Errorf("another command is working on the release %s: wait for it to finish, then run this one again", name)
}

// LostRace is whether Helm ends with an error because somebody else has begun after
// we had looked.
func LostRace(err error) bool {
	return errors.Is(err, driver.ErrReleaseExists) ||
		strings.Contains(err.Error(), "still in use") || strings.Contains(err.Error(), "another operation (install/upgrade/rollback) is in progress")
}
