// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/mlbatch/mlbatch/tools/artifacts/charts/packaging"
)

// Command builds the command mlbatch and the folder charts, which it installs, in a folder.
func Command(t *testing.T, checkout, dir string) {
	t.Helper()
	build := exec.CommandContext(t.Context(), "go", "build", "-o", filepath.Join(dir, "mlbatch"), "./tools/mlbatch")
	build.Dir = checkout
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("cannot build the command: %v\n%s", err, out)
	}
	bundle, err := packaging.Build(t.Context(), checkout)
	if err == nil {
		_, err = bundle.Write(filepath.Join(dir, "charts"))
	}
	if err != nil {
		t.Fatal(err)
	}
}
