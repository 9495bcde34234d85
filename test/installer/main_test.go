// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package installer_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mlbatch/mlbatch/test/patience"
	"github.com/mlbatch/mlbatch/tools/artifacts/charts/packaging"
	"github.com/mlbatch/mlbatch/tools/localcluster"
	"github.com/mlbatch/mlbatch/tools/localcluster/platform"
)

// root is the same path in every run, so that the next run can clean up after a killed one.
var root = filepath.Join(os.TempDir(), "mlbatch-test-installer")

var (
	checkout string
	cluster  *localcluster.Cluster
	admin    client.Client
)

func TestMain(m *testing.M) {
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "test/installer:", err)
		code = 1
	}
	os.Exit(code)
}

func run(m *testing.M) (code int, err error) {
	if checkout, err = localcluster.FindCheckout("."); err != nil {
		return 0, err
	}
	cluster, err = localcluster.New(localcluster.Config{
		Name: "installer", Mode: localcluster.Simulated, Port: 26581, SimulatedNodes: 2, Checkout: checkout,
	}, os.Stderr)
	if err != nil {
		return 0, err
	}
	if err := errors.Join(cluster.Down(), os.RemoveAll(root), os.MkdirAll(root, 0o755)); err != nil {
		return 0, err
	}
	if err := begin(context.Background()); err != nil {
		return 0, errors.Join(err, end())
	}
	code = m.Run()
	if code != 0 && os.Getenv("MLBATCH_E2E_KEEP") != "" {
		return code, nil
	}
	return code, end()
}

func end() error { return errors.Join(cluster.Down(), os.RemoveAll(root)) }

// begin builds the command and the charts, and starts a bare cluster with the programs of the
// platform.
func begin(ctx context.Context) error {
	build := exec.CommandContext(ctx, "go", "build", "-o", program(), "./tools/mlbatch")
	build.Dir = checkout
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("cannot build the command: %w\n%s", err, out)
	}
	bundle, err := packaging.Build(ctx, checkout)
	if err != nil {
		return err
	}
	if _, err := bundle.Write(charts()); err != nil {
		return err
	}
	site := platform.Site{Cluster: cluster, Checkout: checkout, Progress: os.Stderr}
	if _, err := site.Build(ctx); err != nil {
		return err
	}
	if err := cluster.Up(ctx); err != nil {
		return err
	}
	if err := site.LoadImages(ctx); err != nil {
		return err
	}
	config, err := cluster.RESTConfig()
	if err != nil {
		return err
	}
	config.QPS, config.WarningHandler = -1, rest.NoWarnings{}
	admin, err = client.New(config, client.Options{})
	return err
}

func program() string { return filepath.Join(root, "mlbatch") }
func charts() string  { return filepath.Join(root, "charts") }

// mlbatch returns the command as an administrator runs it.
func mlbatch(args ...string) *exec.Cmd {
	cmd := exec.Command(program(), append(args, "--kubeconfig="+cluster.KubeconfigPath())...)
	cmd.Dir = root
	return cmd
}

// installs returns the command with the arguments that all tests share.
func installs(verb string, more ...string) *exec.Cmd {
	return mlbatch(append([]string{
		verb, "--charts=" + charts(), "--profile=localcluster", "--teams=" + filepath.Join(checkout, "setup/teams/simulated.yaml"), "--timeout=" + patience.For(3*time.Minute).String(),
	}, more...)...)
}

// succeeds runs a command that must succeed, and returns its output.
func succeeds(t *testing.T, cmd *exec.Cmd) string {
	t.Helper()
	out, progress, err := finish(cmd)
	t.Logf("mlbatch %s\n%s%s", strings.Join(cmd.Args[1:], " "), progress, out)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// isRefused runs a command that must fail in its first step, with these words in its last line.
func isRefused(t *testing.T, cmd *exec.Cmd, words ...string) {
	t.Helper()
	_, progress, err := finish(cmd)
	if err == nil {
		t.Fatalf("mlbatch %s succeeds", strings.Join(cmd.Args[1:], " "))
	}
	before, said, _ := strings.Cut("\n"+progress, "\nmlbatch: ")
	if strings.Contains(before, "[2/") {
		t.Errorf("it continues with its second step:\n%s", progress)
	}
	for _, word := range words {
		if !strings.Contains(said, word) {
			t.Errorf("it prints\n%s\nwhich lacks %q", progress, word)
		}
	}
}

func finish(cmd *exec.Cmd) (out, progress string, err error) {
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err = cmd.Run()
	return stdout.String(), stderr.String(), err
}

// isKilled runs a command until a line of its progress starts with a prefix and on returns nil,
// and kills it.
func isKilled(t *testing.T, cmd *exec.Cmd, prefix string, on func() error) {
	t.Helper()
	progress, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	said := ""
	for lines := bufio.NewScanner(progress); lines.Scan(); {
		said += lines.Text() + "\n"
		if strings.HasPrefix(lines.Text(), prefix) {
			break
		}
	}
	await(t, "it is time to kill it", on)
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err == nil || cmd.ProcessState.Exited() {
		t.Fatalf("it ended by itself before it could be killed: %v\n%s", err, said)
	}
}
