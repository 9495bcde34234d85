// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package helm_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/mlbatch/mlbatch/setup"
	"github.com/mlbatch/mlbatch/tools/artifacts/charts/packaging"
	"github.com/mlbatch/mlbatch/tools/artifacts/components"
	"github.com/mlbatch/mlbatch/tools/localcluster"
)

// root is the same path in every run; dist has the packages.
var (
	root     = filepath.Join(os.TempDir(), "mlbatch-test-helm")
	checkout string
	versions setup.Versions
	bundle   packaging.Bundle
	clients  []client
)

func dist(file string) string { return filepath.Join(root, "dist", file) }

// packaged returns the archive of a chart.
func packaged(chart string) string { return dist(chart + "-" + versions.Version + ".tgz") }

func TestMain(m *testing.M) {
	if err := prepare(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "test/helm:", err)
		os.Exit(1)
	}
	code := m.Run()
	if err := os.RemoveAll(root); err != nil {
		fmt.Fprintln(os.Stderr, "test/helm:", err)
	}
	os.Exit(code)
}

func prepare(ctx context.Context) (err error) {
	if checkout, err = localcluster.FindCheckout("."); err != nil {
		return err
	}
	if versions, err = setup.Load(); err != nil {
		return err
	}
	if err := os.RemoveAll(root); err != nil {
		return err
	}
	if clients, err = bothClients(ctx); err != nil {
		return err
	}
	if bundle, err = packaging.Build(ctx, checkout); err != nil {
		return err
	}
	_, err = bundle.Write(dist(""))
	return err
}

// client is one version of Helm.
type client struct{ name, path string }

func bothClients(ctx context.Context) ([]client, error) {
	cache, err := components.UserCache(checkout)
	if err != nil {
		return nil, err
	}
	three, four := components.Helm()
	built3, err3 := cache.Get(ctx, os.Stderr, three)
	built4, err4 := cache.Get(ctx, os.Stderr, four)
	return []client{{"helm3", built3["helm"]}, {"helm4", built4["helm"]}}, errors.Join(err3, err4)
}

// command runs this client as for a user who has never used Helm before.
func (c client) command(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	home := t.TempDir()
	cmd := exec.CommandContext(t.Context(), c.path, args...)
	cmd.Env = append(slices.Clone(os.Environ()), "HOME="+home,
		"HELM_CACHE_HOME="+home, "HELM_CONFIG_HOME="+home, "HELM_DATA_HOME="+home)
	return cmd
}

// says runs the client and returns its output.
func (c client) says(t *testing.T, args ...string) string {
	t.Helper()
	out, err := c.command(t, args...).Output()
	if err != nil {
		var failed *exec.ExitError
		errors.As(err, &failed)
		t.Fatalf("%s %q: %v\n%s%s", c.name, args, err, out, failed.Stderr)
	}
	return string(out)
}
