// SPDX-License-Identifier: Apache-2.0

package installer

import (
	"testing"

	"helm.sh/helm/v3/pkg/release"
	"helm.sh/helm/v3/pkg/storage"
	"helm.sh/helm/v3/pkg/storage/driver"
)

func TestAnInterruptedReleaseCanBeUpgraded(t *testing.T) {
	for name, c := range map[string]struct{ before, after release.Status }{
		"killed during the installation": {release.StatusPendingInstall, release.StatusFailed},
		"killed during an upgrade":       {release.StatusPendingUpgrade, release.StatusFailed},
		"installed":                      {release.StatusDeployed, release.StatusDeployed},
	} {
		t.Run(name, func(t *testing.T) {
			releases := storage.Init(driver.NewMemory())
			record := &release.Release{Name: "mlbatch", Version: 1, Info: &release.Info{Status: c.before}}
			if err := releases.Create(record); err != nil {
				t.Fatal(err)
			}
			if err := forgetInterrupted(releases, "mlbatch"); err != nil {
				t.Fatal(err)
			}
			last, err := releases.Last("mlbatch")
			if err != nil || last.Info.Status != c.after {
				t.Errorf("the release is %s (%v), want %s", last.Info.Status, err, c.after)
			}
		})
	}
}

func TestAReleaseThatWasNeverInstalledIsNoTrouble(t *testing.T) {
	if err := forgetInterrupted(storage.Init(driver.NewMemory()), "mlbatch"); err != nil {
		t.Error(err)
	}
}
