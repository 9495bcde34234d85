// SPDX-License-Identifier: Apache-2.0

package install

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"helm.sh/helm/v3/pkg/action"
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
	const atWork = "another command is at work on the release mlbatch: wait until it has ended, and run this one again"
	for name, c := range map[string]struct {
		ends       time.Duration
		uninstalls bool
		want       string
	}{
		"somebody is at work":                      {20 * time.Second, false, atWork},
		"it was killed just now":                   {time.Hour, false, ""},
		"somebody is at work, and it has to go":    {20 * time.Second, true, atWork},
		"it was killed just now, and it has to go": {time.Hour, true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := goes(t, release.StatusPendingInstall, nil)
				m.last.Info.LastDeployed = helmtime.Now()
				defer time.AfterFunc(c.ends, func() {
					ended := *m.last
					ended.Info = &release.Info{Status: release.StatusDeployed}
					if err := m.helm.Releases.Update(&ended); err != nil {
						t.Error(err)
					}
				}).Stop()
				var err error
				if c.uninstalls {
					err = Uninstaller{}.check(t.Context(), cluster(user(everything)), []*removal{m})
				} else {
					err = forgetInterrupted(t.Context(), m.helm.Releases, m.Name)
				}
				got := ""
				if err != nil {
					got = err.Error()
				}
				if got != c.want {
					t.Errorf("it says %q, want %q", got, c.want)
				}
			})
		})
	}
}

func TestWhoBeginsAtTheSameMomentIsKnownByHelmsWords(t *testing.T) {
	begun := goes(t, release.StatusPendingInstall, nil)
	install, upgrade := action.NewInstall(begun.helm), action.NewUpgrade(begun.helm)
	install.ReleaseName, install.Namespace, upgrade.Namespace = "mlbatch", Namespace, Namespace
	_, installed := install.RunWithContext(t.Context(), begun.last.Chart, nil)
	_, upgraded := upgrade.RunWithContext(t.Context(), "mlbatch", begun.last.Chart, nil)
	stored := begun.helm.Releases.Create(begun.last)
	for _, err := range []error{installed, upgraded, stored} {
		if err == nil || !begunMeanwhile(err) {
			t.Errorf("Helm says %v", err)
		}
	}
	if begunMeanwhile(errors.New("deployments is forbidden")) {
		t.Error("any error is taken for somebody at work")
	}
}
