// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package installer_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// theFileIsCompared checks that the cluster has what the file of the teams says, whatever the API server adds, and
// that a change of the file shows until it is taken back.
func theFileIsCompared(t *testing.T) {
	original, err := os.ReadFile(filepath.Join(checkout, "setup/teams/simulated.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "teams.yaml")
	if err := os.WriteFile(file, original, 0o600); err != nil {
		t.Fatal(err)
	}
	if out := succeeds(t, mlbatch("team", "diff", "--file="+file)); out != "" {
		t.Errorf("the file has just been installed, but the cluster differs:\n%s", out)
	}
	edit(t, "set", "red", "nvidia.com/gpu=32", "cpu=320", "--file="+file)
	out, progress, err := finish(mlbatch("team", "diff", "--file="+file))
	const row = "team red               default-flavor  nvidia.com/gpu  40       32    -8\n"
	if exit := (*exec.ExitError)(nil); !errors.As(err, &exit) || exit.ExitCode() != 3 || strings.Contains(out, "OBJECT") || !strings.Contains(out, row) {
		t.Errorf("got %v, %s%s\nwant status 3 and the row %s", err, out, progress, row)
	}
	edit(t, "add", "green", "cpu=1", "memory=1Gi", "nvidia.com/gpu=8", "nvidia.com/roce_gdr=0", "pods=10", "--file="+file)
	if out, _, _ := finish(mlbatch("team", "diff", "--file="+file)); !strings.Contains(out, "ClusterQueue green-cluster-queue  missing") {
		t.Errorf("the new team is missing in\n%s", out)
	}
	edit(t, "remove", "green", "--file="+file)
	edit(t, "set", "red", "nvidia.com/gpu=40", "--file="+file)
	succeeds(t, mlbatch("team", "diff", "--file="+file))
}

// edit runs a verb of mlbatch team that needs no cluster.
func edit(t *testing.T, args ...string) {
	t.Helper()
	cmd := exec.Command(program(), append([]string{"team"}, args...)...)
	cmd.Dir = root
	succeeds(t, cmd)
}
