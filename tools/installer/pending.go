// SPDX-License-Identifier: Apache-2.0

package installer

import (
	"fmt"

	"helm.sh/helm/v3/pkg/release"
	"helm.sh/helm/v3/pkg/storage"
)

// forgetInterrupted makes way for the next Apply where a command was killed
// while Helm worked: Helm takes the record that it left for a sign that somebody
// else is at work. A failed release can be upgraded, whatever of it exists.
func forgetInterrupted(releases *storage.Storage, name string) error {
	last, err := releases.Last(name)
	if err != nil || !last.Info.Status.IsPending() {
		return nil
	}
	last.SetStatus(release.StatusFailed, "the command was killed")
	if err := releases.Update(last); err != nil {
		return fmt.Errorf("cannot clear the record of an interrupted installation: %w", err)
	}
	return nil
}
