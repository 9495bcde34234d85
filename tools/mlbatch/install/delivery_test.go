// SPDX-License-Identifier: Apache-2.0

package install

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/release"
	"helm.sh/helm/v3/pkg/storage"
	"helm.sh/helm/v3/pkg/storage/driver"

	"github.com/mlbatch/mlbatch/test/fakecluster"
	"github.com/mlbatch/mlbatch/tools/mlbatch/install/helmrelease"
)

func TestValuesStayWhereNoneAreGiven(t *testing.T) {
	one, two := map[string]any{"a": map[string]any{"x": 1.0, "y": 1.0}}, map[string]any{"a": map[string]any{"x": 2.0}}
	for name, c := range map[string]struct {
		history []*release.Release
		want    map[string]any
	}{
		"there is no release": {nil, map[string]any{"a": map[string]any{"z": 3.0}, "b": 3.0}},
		"there is one": {[]*release.Release{fakecluster.Revision(1, release.StatusDeployed, one)},
			map[string]any{"a": map[string]any{"x": 1.0, "y": 1.0, "z": 3.0}, "b": 3.0}},
		"its upgrade was killed": {[]*release.Release{fakecluster.Revision(1, release.StatusDeployed, one), fakecluster.Revision(2, release.StatusPendingUpgrade, two)},
			map[string]any{"a": map[string]any{"x": 1.0, "y": 1.0, "z": 3.0}, "b": 3.0}},
		"its installation was killed": {[]*release.Release{fakecluster.Revision(1, release.StatusPendingInstall, two)},
			map[string]any{"a": map[string]any{"x": 2.0, "z": 3.0}, "b": 3.0}},
	} {
		t.Run(name, func(t *testing.T) {
			releases := storage.Init(driver.NewMemory())
			for _, r := range c.history {
				if err := releases.Create(r); err != nil {
					t.Fatal(err)
				}
			}
			d := &delivery{Release: helmrelease.Release{Name: "mlbatch"}, values: map[string]any{"a": map[string]any{"z": 3.0}, "b": 3.0}}
			var err error
			if d.Last, d.Complete, err = d.Revisions(releases); err != nil {
				t.Fatal(err)
			}
			d.keepValues()
			if diff := cmp.Diff(c.want, d.values); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestWhatIsTheSameNeedsNoChange(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*delivery)
		want   bool
	}{
		"all of it":                {func(*delivery) {}, true},
		"a number of another type": {func(d *delivery) { d.values["a"] = int64(1) }, true},
		"another version":          {func(d *delivery) { d.chart.Version = "0.1.1" }, false},
		"another manifest":         {func(d *delivery) { d.manifest = "another manifest" }, false},
		"other values":             {func(d *delivery) { d.values["a"] = 2.0 }, false},
		"an object is gone":        {func(d *delivery) { d.seen.missing = true }, false},
	} {
		t.Run(name, func(t *testing.T) {
			d := &delivery{
				History: helmrelease.History{Last: fakecluster.Revision(1, release.StatusDeployed, map[string]any{"a": 1.0})}, manifest: "the manifest",
				chart: &chart.Metadata{Version: "0.1.0"}, values: map[string]any{"a": 1.0},
			}
			c.change(d)
			if got := d.same(); got != c.want {
				t.Errorf("got %t", got)
			}
		})
	}
}

func TestTheTeamsGoAlongWithAnUpgrade(t *testing.T) {
	kept := map[string]any{"teams": []any{"blue"}}
	release := fakecluster.Revision(1, release.StatusDeployed, kept)
	for name, c := range map[string]struct {
		verb  verb
		teams *delivery
		want  any
	}{
		"as they are":                   {upgrade, &delivery{History: helmrelease.History{Last: release, Complete: release}, values: map[string]any{}}, map[string]any{"teams": []any{"blue"}}},
		"as a new file says":            {upgrade, &delivery{History: helmrelease.History{Last: release, Complete: release}, Release: helmrelease.Release{Values: []string{"teams.yaml"}}, values: map[string]any{"cohort": "x"}}, map[string]any{"cohort": "x"}},
		"not if there are none":         {upgrade, &delivery{values: map[string]any{}}, nil},
		"not if they are elsewhere":     {upgrade, &delivery{History: helmrelease.History{Elsewhere: "tenants"}, Release: helmrelease.Release{Name: "teams"}, values: map[string]any{}}, nil},
		"by a file if there are none":   {upgrade, &delivery{Release: helmrelease.Release{Values: []string{"teams.yaml"}}, values: map[string]any{"cohort": "x"}}, map[string]any{"cohort": "x"}},
		"an installation keeps nothing": {install, &delivery{History: helmrelease.History{Last: release, Complete: release}, Release: helmrelease.Release{Values: []string{"teams.yaml"}}, values: map[string]any{"cohort": "x"}}, map[string]any{"cohort": "x"}},
	} {
		t.Run(name, func(t *testing.T) {
			var said strings.Builder
			j := &job{verb: c.verb, Installer: Installer{Progress: &said}}
			j.add(&delivery{values: map[string]any{}})
			j.add(c.teams)
			var got any
			if len(j.all) == 2 {
				got = j.all[1].values
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
			told := map[string]string{"tenants": "warning: the release teams is in namespace tenants: use --teams-namespace tenants\n"}[c.teams.Elsewhere]
			if said.String() != told {
				t.Errorf("the user is told %q, want %q", said.String(), told)
			}
		})
	}
}

func TestTheNewestVersionThatWasBegunIsInstalled(t *testing.T) {
	of := func(version string) *release.Release {
		r := fakecluster.Revision(1, release.StatusDeployed, nil)
		r.Chart = &chart.Chart{Metadata: &chart.Metadata{Version: version}}
		return r
	}
	for name, c := range map[string]struct {
		complete, last *release.Release
		want           string
	}{
		"nothing":                                {nil, nil, ""},
		"an installation that was killed":        {nil, of("0.2.0"), "0.2.0"},
		"an upgrade that was killed":             {of("0.9.0"), of("0.10.0"), "0.10.0"},
		"a step back of a patch that was killed": {of("0.2.1"), of("0.2.0"), "0.2.1"},
	} {
		t.Run(name, func(t *testing.T) {
			d := &delivery{Release: helmrelease.Release{Name: "mlbatch"}, chart: &chart.Metadata{Version: "0.2.0"}, History: helmrelease.History{Complete: c.complete, Last: c.last}}
			if got := d.facts(nil).Installed; got != c.want {
				t.Errorf("got %q", got)
			}
		})
	}
}
