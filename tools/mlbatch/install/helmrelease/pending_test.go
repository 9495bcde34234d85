// SPDX-License-Identifier: Apache-2.0

package helmrelease

import (
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	"helm.sh/helm/v3/pkg/action"
	kubefake "helm.sh/helm/v3/pkg/kube/fake"
	"helm.sh/helm/v3/pkg/release"
	"helm.sh/helm/v3/pkg/storage"
	"helm.sh/helm/v3/pkg/storage/driver"
	helmtime "helm.sh/helm/v3/pkg/time"

	"github.com/mlbatch/mlbatch/test/fakecluster"
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
			if err := FailInterrupted(releases, "mlbatch", true); err != nil {
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
	if err := FailInterrupted(storage.Init(driver.NewMemory()), "mlbatch", false); err != nil {
		t.Error(err)
	}
}

func TestOnlyUsersSayThatACommandWasKilled(t *testing.T) {
	begun := begunRelease(t)
	want := "the release mlbatch is pending-install since 2026-11-24T17:20:05Z: wait for the command that works on it to finish, " +
		"or, if it was killed, run this one with --resume-interrupted"
	if got := fmt.Sprint(FailInterrupted(begun.Releases, "mlbatch", false)); got != want {
		t.Errorf("it says %q, want %q", got, want)
	}
	if last, err := begun.Releases.Last("mlbatch"); err != nil || last.Info.Status != release.StatusPendingInstall {
		t.Errorf("the release is %s (%v)", last.Info.Status, err)
	}
}

// begunRelease returns a Helm configuration in which the installation of mlbatch has just started.
func begunRelease(t *testing.T) *action.Configuration {
	t.Helper()
	begun := fakecluster.Revision(1, release.StatusPendingInstall, nil)
	begun.Manifest, begun.Info.LastDeployed = "", helmtime.Date(2026, 11, 24, 17, 20, 5, 0, time.UTC)
	releases := storage.Init(driver.NewMemory())
	if err := releases.Create(begun); err != nil {
		t.Fatal(err)
	}
	return &action.Configuration{
		Releases: releases, Log: func(string, ...any) {},
		KubeClient: &kubefake.FailingKubeClient{PrintingKubeClient: kubefake.PrintingKubeClient{Out: io.Discard}},
	}
}

func TestWhoBeginsAtTheSameMomentIsKnownByHelmsWords(t *testing.T) {
	helm := begunRelease(t)
	last, err := helm.Releases.Last("mlbatch")
	if err != nil {
		t.Fatal(err)
	}
	install, upgrade := action.NewInstall(helm), action.NewUpgrade(helm)
	install.ReleaseName, install.Namespace, upgrade.Namespace = "mlbatch", DefaultNamespace, DefaultNamespace
	_, installed := install.RunWithContext(t.Context(), last.Chart, nil)
	_, upgraded := upgrade.RunWithContext(t.Context(), "mlbatch", last.Chart, nil)
	stored := helm.Releases.Create(last)
	for _, err := range []error{installed, upgraded, stored} {
		if err == nil || !LostRace(err) {
			t.Errorf("Helm says %v", err)
		}
	}
	if LostRace(errors.New("deployments is forbidden")) {
		t.Error("any error is taken for somebody at work")
	}
}
