// SPDX-License-Identifier: Apache-2.0

package platform

import (
	"path/filepath"
	"testing"

	"helm.sh/helm/v3/pkg/chartutil"

	"github.com/mlbatch/mlbatch/test/wording"
)

func TestAnotherControllerChangesThePods(t *testing.T) {
	dir := t.TempDir()
	mark := func(program string) any {
		write(t, filepath.Join(dir, controllerProgram), program)
		path, err := stampController(dir)
		if err != nil {
			t.Fatal(err)
		}
		values, err := chartutil.ReadValuesFile(path)
		if err != nil {
			t.Fatal(err)
		}
		annotations, err := values.Table("appwrapper.podAnnotations")
		if err != nil {
			t.Fatal(err)
		}
		return annotations["mlbatch.dev/program"]
	}
	one, same, other := mark("one"), mark("one"), mark("other")
	if one != same || one == other || one == nil {
		t.Errorf("the marks are %v, %v and %v", one, same, other)
	}
}

func TestInstallNeedsALoadedController(t *testing.T) {
	_, err := stampController(t.TempDir())
	wording.Wanted(t, err, "cannot read the loaded controller")
}
