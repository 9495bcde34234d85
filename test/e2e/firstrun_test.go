// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package e2e_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/e2e-framework/pkg/envconf"
	"sigs.k8s.io/e2e-framework/pkg/features"

	"github.com/mlbatch/mlbatch/test/e2e/needs"
	"github.com/mlbatch/mlbatch/test/patience"
	"github.com/mlbatch/mlbatch/tools/artifacts/compiler"
)

// The beginning of docs/codeflare.md, as a researcher follows it. Only the image is changed.
func TestFromNothingToAFinishedRun(t *testing.T) {
	testenv.Test(t, features.New("first run").Assess("every command of the page works", func(ctx context.Context, t *testing.T, cfg *envconf.Config) context.Context {
		s := tell(t, cfg, "e2e-runs", "ruth", needs.Machine, needs.TrainingPods, needs.Runs)
		manifest, commands := firstRun(t)
		dir := t.TempDir()
		if err := (compiler.Program{Dir: site.Checkout, Packages: []string{"./tools/mlbatch"}}).Compile(ctx, filepath.Join(dir, "mlbatch")); err != nil {
			t.Fatal(err)
		}
		manifest = strings.ReplaceAll(manifest, "busybox:1.37", here.Training.Name)
		if err := os.WriteFile(filepath.Join(dir, "hello.yaml"), []byte(manifest), 0o600); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := patience.Context(ctx)
		defer cancel()
		shell := exec.CommandContext(ctx, "sh", "-exc", strings.ReplaceAll(commands, "TEAM", s.namespace)) //nolint:gosec // They are the page's.
		shell.Dir = dir
		shell.Env = append(os.Environ(), "KUBECONFIG="+site.Cluster.KubeconfigPath(), "PATH="+dir+":"+filepath.Join(site.Cluster.Dir(), "bin")+":"+os.Getenv("PATH"))
		out, err := shell.CombinedOutput()
		if err != nil || !strings.Contains(string(out), "\nworker 0 of 1 says hello\n") {
			t.Fatalf("the commands of docs/codeflare.md: %v\n%s", err, out)
		}
		return ctx
	}).Feature())
}

// firstRun is the first manifest of the page, and the commands below it.
func firstRun(t *testing.T) (manifest, commands string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(site.Checkout, "docs", "codeflare.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "## From nothing to a finished Run\n")
	_, rest, _ = strings.Cut(rest, "```yaml\n")
	manifest, rest, _ = strings.Cut(rest, "```")
	_, rest, _ = strings.Cut(rest, "```sh\n")
	commands, _, found := strings.Cut(rest, "```")
	if !found {
		t.Fatal("docs/codeflare.md has no first Run")
	}
	return manifest, commands
}
