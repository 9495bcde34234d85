// SPDX-License-Identifier: Apache-2.0

package helmrelease

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"helm.sh/helm/v3/pkg/release"
	"helm.sh/helm/v3/pkg/storage"
	"helm.sh/helm/v3/pkg/storage/driver"
)

// FailInterrupted marks a pending release as failed, after a command was killed while Helm
// worked. Helm refuses to change a pending release, but upgrades a failed one. Only users know
// whether the other command was killed, so it does nothing unless they say so.
func FailInterrupted(releases *storage.Storage, name string, killed bool) error {
	last, err := releases.Last(name)
	if err != nil || !last.Info.Status.IsPending() {
		return nil
	}
	if err := CheckIdle(last, killed); err != nil {
		return err
	}
	last.SetStatus(release.StatusFailed, "the command was killed")
	if err := releases.Update(last); err != nil {
		return fmt.Errorf("cannot clear the record of an interrupted installation: %w", err)
	}
	return nil
}

// CheckIdle returns an error if another command may be working on a release. Helm's record does not
// say whether that command still runs; helm --wait may take minutes.
func CheckIdle(last *release.Release, killed bool) error {
	if killed || !last.Info.Status.IsPending() {
		return nil
	}
	began := last.Info.LastDeployed.UTC().Format(time.RFC3339)
	return fmt.Errorf("the release %s is %s since %s: wait for the command that works on it to finish, or, if it was killed, run this one with --resume-interrupted",
		last.Name, last.Info.Status, began)
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
