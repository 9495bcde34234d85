// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"k8s.io/client-go/kubernetes/fake"

	"github.com/mlbatch/mlbatch/test/fakecluster"
	"github.com/mlbatch/mlbatch/tools/mlbatch/install/helmrelease"
)

func TestStepsAreTakenInOrderAndNamed(t *testing.T) {
	var progress strings.Builder
	var done []string
	does := func(name string, err error) step {
		return step{name, func(context.Context) error { done = append(done, name); return err }}
	}
	failed := errors.New("no")
	err := walk(t.Context(), []step{does("look", nil), does("install", failed), does("wait", nil)}, &progress, "")
	if !errors.Is(err, failed) || strings.Join(done, " ") != "look install" {
		t.Errorf("%v after %q", err, done)
	}
	if got := progress.String(); got != "[1/3] look\n[2/3] install\n" {
		t.Errorf("it says %q", got)
	}
}

func TestWhoInterruptsHearsHowToGoOn(t *testing.T) {
	for want, c := range map[string]struct {
		at     int
		orElse string
	}{
		"interrupted in step 1 of 3, before anything was changed: run the same command again":                         {0, ", or not"},
		"interrupted in step 2 of 3; completed steps are kept: run the same command again to resume":                  {1, ""},
		"interrupted in step 3 of 3; completed steps are kept: run the same command again to resume, or take it away": {2, ", or take it away"},
	} {
		t.Run(want, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var steps []step
			for n := range 3 {
				steps = append(steps, step{"step", func(context.Context) error {
					switch {
					case n > c.at:
						t.Error("it goes on")
					case n == c.at:
						cancel()
						return errors.New("what Helm says then")
					}
					return nil
				}})
			}
			if err := walk(ctx, steps, &strings.Builder{}, c.orElse); !errors.Is(err, ErrInterrupted) || err.Error() != want {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestSeveralObstaclesAreAList(t *testing.T) {
	if got := failed([]string{"no Kueue"}).Error(); got != "no Kueue" {
		t.Errorf("one is %q", got)
	}
	if got := failed([]string{"no Kueue", "no rights"}).Error(); got != "2 checks failed:\n  no Kueue\n  no rights" {
		t.Errorf("two are %q", got)
	}
}

// The previous run was killed just before this step, so nothing else is left to do.
func TestAnUpgradeDropsConversionsOfPartsThatAreOff(t *testing.T) {
	api := fakecluster.API(fake.NewClientset(), fakecluster.ConvertedCRD(helmrelease.DefaultNamespace, "v1beta2"))
	platform := &delivery{Release: helmrelease.Release{Name: "mlbatch", Namespace: helmrelease.DefaultNamespace}, move: stay}
	j := &job{Installer: Installer{Progress: io.Discard}, api: api, all: []*delivery{platform}}
	if err := j.deliverPlatform(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := fakecluster.Conversion(t, api, fakecluster.ConvertedCRD(helmrelease.DefaultNamespace)); got != "None" {
		t.Errorf("its conversion is %s", got)
	}
}
