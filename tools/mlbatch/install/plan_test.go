// SPDX-License-Identifier: Apache-2.0

package install

import (
	"errors"
	"testing"

	"helm.sh/helm/v3/pkg/release"
)

func TestWhatIsDoneAboutARelease(t *testing.T) {
	const (
		busy    = "wait for the command that works on it"
		begin   = "the release mlbatch is not installed: run 'mlbatch install' first"
		finish  = "the release mlbatch was not completely uninstalled: run 'mlbatch uninstall' first"
		other   = "the release mlbatch is already installed with a different chart or values, or some objects are missing: change it with 'mlbatch upgrade'"
		goThere = "an upgrade of the release mlbatch was interrupted: resume with 'mlbatch upgrade'"
	)
	for name, c := range map[string]struct {
		state                    state
		install, upgrade, ensure string
	}{
		"there is none":                            {state{}, "installed", begin, "installed"},
		"it is as it has to be":                    {state{status: release.StatusDeployed, deployed: true, same: true}, "unchanged", "unchanged", "unchanged"},
		"it is other than it has to be":            {state{status: release.StatusDeployed, deployed: true}, other, "upgraded", "upgraded"},
		"its installation was killed":              {state{status: release.StatusPendingInstall}, "completed", "completed", "completed"},
		"its installation may still go on":         {state{status: release.StatusPendingInstall, pending: errors.New(busy)}, busy, busy, busy},
		"its upgrade may still go on":              {state{status: release.StatusPendingUpgrade, deployed: true, pending: errors.New(busy)}, goThere, busy, busy},
		"its installation failed":                  {state{status: release.StatusFailed}, "completed", "completed", "completed"},
		"what was killed would have been the same": {state{status: release.StatusPendingInstall, same: true}, "completed", "completed", "completed"},
		"its upgrade was killed":                   {state{status: release.StatusPendingUpgrade, deployed: true}, goThere, "completed", "completed"},
		"its upgrade failed":                       {state{status: release.StatusFailed, deployed: true}, goThere, "completed", "completed"},
		"it is on its way out":                     {state{status: release.StatusUninstalling}, finish, finish, finish},
		"it is gone but for its record":            {state{status: release.StatusUninstalled}, finish, finish, finish},
	} {
		t.Run(name, func(t *testing.T) {
			for v, want := range map[verb]string{install: c.install, upgrade: c.upgrade, ensure: c.ensure} {
				got, err := decide(v, "mlbatch", c.state)
				if err != nil {
					got = move(err.Error())
				}
				if string(got) != want {
					t.Errorf("%s: %q, want %q", v, got, want)
				}
			}
		})
	}
}
