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

// Helm needs only seconds, because it does not wait for pods. A pending record younger than
// this may belong to a running command, so it is watched for longer than Helm needs.
const young, watched = time.Minute, 30 * time.Second

// FailInterrupted marks a pending release as failed, after a command was killed while Helm
// worked. Helm refuses to change a pending release, but upgrades a failed one.
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

// CheckIdle watches a young pending record, and fails as soon as another command changes it.
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

// Busy returns the error for a release that another command is changing.
func Busy(name string) error {
	return fmt.Errorf("another command is working on the release %s: wait for it to finish, then run this one again", name)
}

// LostRace reports whether Helm failed because another command started after our check.
func LostRace(err error) bool {
	return errors.Is(err, driver.ErrReleaseExists) ||
		strings.Contains(err.Error(), "still in use") || strings.Contains(err.Error(), "another operation (install/upgrade/rollback) is in progress")
}
