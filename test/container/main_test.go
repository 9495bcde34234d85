// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package container_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/mlbatch/mlbatch/setup"
	"github.com/mlbatch/mlbatch/tools/artifacts/components"
	"github.com/mlbatch/mlbatch/tools/artifacts/filecache"
	"github.com/mlbatch/mlbatch/tools/artifacts/subprocess"
	"github.com/mlbatch/mlbatch/tools/localcluster"
)

// scratch is the same path in every run, so that the next run can clean up after a killed one.
var scratch = filepath.Join(os.TempDir(), "mlbatch-test-container")

var (
	// debian is the folder with a plain Debian 13.
	debian = filepath.Join(scratch, "debian")
	// checkout, cache, and what Go compiled and downloaded: containers have them, and write beside.
	checkout, cache, compiled, modules, goRoot string
)

func TestMain(m *testing.M) {
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "test/container:", err)
		os.Exit(1)
	}
	os.Exit(code)
}

func run(m *testing.M) (int, error) {
	ctx := context.Background()
	if os.Geteuid() != 0 {
		return 0, errors.New("these tests start containers with privileges, which needs root; run them with sudo")
	}
	if err := clear(ctx); err != nil {
		return 0, err
	}
	if err := errors.Join(findFolders(), buildComponents(ctx)); err != nil {
		return 0, err
	}
	if err := unpackDebian(ctx); err != nil {
		return 0, err
	}
	code := m.Run()
	return code, clear(ctx)
}

// clear removes all containers of these tests, and their folders, but no mount that one left.
func clear(ctx context.Context) error {
	if _, err := os.Stat(scratch); err != nil {
		return nil
	}
	if _, err := podman(ctx, "rm", "--all", "--force", "--time=0"); err != nil {
		return err
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return err
	}
	for _, line := range strings.Split(string(mounts), "\n") {
		if strings.Contains(line, scratch) && !strings.Contains(line, scratch+"/store") {
			return fmt.Errorf("a container has left a mount: %s", line)
		}
	}
	_ = syscall.Unmount(filepath.Join(scratch, "store/overlay"), 0) // podman's own, which it keeps
	return os.RemoveAll(scratch)
}

func findFolders() error {
	out, err := exec.Command("go", "env", "GOCACHE", "GOMODCACHE", "GOROOT").Output()
	found := strings.Fields(string(out))
	if err != nil || len(found) != 3 {
		return fmt.Errorf("cannot ask go for its folders: %q, %w", out, err)
	}
	compiled, modules, goRoot = found[0], found[1], found[2]
	var err1, err2 error
	cache, err1 = filecache.UserDir()
	checkout, err2 = localcluster.FindCheckout(".")
	return errors.Join(err1, err2)
}

// buildComponents builds missing components here, where the next run finds them.
func buildComponents(ctx context.Context) error {
	versions, err1 := setup.Load()
	builds, err2 := components.UserCache(checkout)
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	_, err := builds.Get(ctx, os.Stderr, append(components.Node(versions), components.Platform(versions)...)...)
	return err
}

// packages are those that a reader of docs/local-cluster.md installs, beside Go.
const packages = "ca-certificates,git,make"

// unpackDebian makes the folder with Debian 13. The download is cached.
func unpackDebian(ctx context.Context) error {
	entry := filecache.Entry{
		Path: filepath.Join(cache, "container-trixie-1"), Title: "Debian 13",
		Fill: func(dir string) error {
			return tool(ctx, "mmdebstrap", "--variant=minbase", "--include="+packages, "trixie", filepath.Join(dir, "root.tar"))
		},
	}
	if err := entry.Get(ctx, os.Stderr); err != nil {
		return err
	}
	if err := os.MkdirAll(debian, 0o755); err != nil {
		return err
	}
	return tool(ctx, "tar", "--extract", "--numeric-owner", "--file", filepath.Join(entry.Path, "root.tar"), "--directory", debian)
}

// tool runs a program in a private mount namespace: an interrupted mmdebstrap leaves mounts.
func tool(ctx context.Context, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
	if err := subprocess.Run(ctx, cmd); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}
