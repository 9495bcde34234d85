// SPDX-License-Identifier: Apache-2.0

package installer

import (
	"testing"
	"testing/synctest"
	"time"

	"helm.sh/helm/v3/pkg/release"
	"helm.sh/helm/v3/pkg/storage"
	"helm.sh/helm/v3/pkg/storage/driver"
	helmtime "helm.sh/helm/v3/pkg/time"
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
			if err := forgetInterrupted(t.Context(), releases, "mlbatch"); err != nil {
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
	if err := forgetInterrupted(t.Context(), storage.Init(driver.NewMemory()), "mlbatch"); err != nil {
		t.Error(err)
	}
}

func TestWhoIsAtWorkIsLeftAlone(t *testing.T) {
	for name, c := range map[string]struct {
		ends time.Duration
		want string
	}{
		"somebody is at work":    {20 * time.Second, "another command is at work on the release mlbatch: wait until it has ended, and run this one again"},
		"it was killed just now": {time.Hour, ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				releases := storage.Init(driver.NewMemory())
				begun := release.Release{Name: "mlbatch", Version: 1, Info: &release.Info{Status: release.StatusPendingInstall, LastDeployed: helmtime.Now()}}
				if err := releases.Create(&begun); err != nil {
					t.Fatal(err)
				}
				atWork := time.AfterFunc(c.ends, func() {
					ended := begun
					ended.Info = &release.Info{Status: release.StatusDeployed}
					if err := releases.Update(&ended); err != nil {
						t.Error(err)
					}
				})
				defer atWork.Stop()
				got := ""
				if err := forgetInterrupted(t.Context(), releases, "mlbatch"); err != nil {
					got = err.Error()
				}
				if got != c.want {
					t.Errorf("it says %q, want %q", got, c.want)
				}
			})
		})
	}
}
