// SPDX-License-Identifier: Apache-2.0

package platform

import (
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v3/pkg/chartutil"

	"github.com/mlbatch/mlbatch/setup"
	"github.com/mlbatch/mlbatch/test/wording"
	"github.com/mlbatch/mlbatch/tools/artifacts/components"
	"github.com/mlbatch/mlbatch/tools/localcluster/plan"
	"github.com/mlbatch/mlbatch/tools/mlbatch/parts"
)

func TestAnotherControllerChangesItsPodsAlone(t *testing.T) {
	dir := t.TempDir()
	marks := func(appwrapper, runs string) (one, other any) {
		write(t, filepath.Join(dir, "controller"), appwrapper)
		write(t, filepath.Join(dir, "runs"), runs)
		path, err := stampControllers(dir)
		if err != nil {
			t.Fatal(err)
		}
		values, err := chartutil.ReadValuesFile(path)
		if err != nil {
			t.Fatal(err)
		}
		mark := func(part string) any {
			annotations, err := values.Table(part + ".podAnnotations")
			if err != nil {
				t.Fatal(err)
			}
			return annotations["mlbatch.dev/program"]
		}
		return mark("appwrapper"), mark("codeflare")
	}
	a, x := marks("a", "x")
	b, same := marks("b", "x")
	again, y := marks("b", "y")
	if a == b || x != same || b != again || x == y || a == nil || x == nil {
		t.Errorf("the marks are %v %v, %v %v and %v %v", a, x, b, same, again, y)
	}
}

func TestInstallNeedsLoadedControllers(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "controller"), "a")
	_, err := stampControllers(dir)
	wording.Wanted(t, err, "cannot read the loaded controller")
}

func TestOurImageHasEveryProgramOfOurs(t *testing.T) {
	versions, err := setup.Load()
	if err != nil {
		t.Fatal(err)
	}
	ours := components.Binaries{"controller": "/bin/c", "runs": "/bin/r", "agent": "/bin/a"}
	theirs := components.Binaries{"controller": "/bin/podgroups"}
	for _, every := range []bool{true, false} {
		images := Site{EveryPart: every}.byImage(versions, ours, theirs)
		want := plan.Image{File: "/bin/c", Path: "/manager", More: map[string]string{"/runs": "/bin/r"}}
		if diff := cmp.Diff(want, images[versions.ControllerImage()]); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
		if diff := cmp.Diff(plan.Image{File: "/bin/a", Path: "/agent", More: map[string]string{}}, images[versions.AgentImage()]); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
		groups, _ := parts.Named("coscheduler")
		for _, i := range groups.Images {
			if got := images[groups.Reference(i, versions)].File; i.Program() == "controller" && got != "/bin/podgroups" {
				t.Errorf("the coscheduler's controller is %s", got)
			}
		}
		if _, has := images[versions.Platform["jobset"].Image]; has != every {
			t.Errorf("every part %t, and JobSet's image %t", every, has)
		}
	}
}
