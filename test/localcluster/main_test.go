// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package localcluster_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/mlbatch/mlbatch/setup"
	"github.com/mlbatch/mlbatch/tools/artifacts/components"
	"github.com/mlbatch/mlbatch/tools/artifacts/filecache"
	"github.com/mlbatch/mlbatch/tools/localcluster"
)

// insideVariable is set in the process that runs the tests.
const insideVariable = "MLBATCH_TEST_PRIVATE_MOUNTS"

// All clusters of the tests are below one folder, so that the next run can clean up after a
// killed one.
var (
	root = filepath.Join(os.TempDir(), "mlbatch-test-clusters")
	home = filepath.Join(root, "home")
	// other is where the tests mount a checkout that they modify.
	other = filepath.Join(root, "other-checkout")
)

// checkout is this repository.
var checkout string

// TestMain runs the tests in a process with private mounts. However the process ends, its
// mounts disappear with it.
func TestMain(m *testing.M) {
	do := inside
	if os.Getenv(insideVariable) == "" {
		do = outside
	}
	code, err := do(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "test/localcluster:", err)
		os.Exit(1)
	}
	os.Exit(code)
}

// outside builds missing components in the user's cache, and runs the tests in a child process.
func outside(*testing.M) (int, error) {
	if err := buildComponents(); err != nil {
		return 0, err
	}
	// The child must not outlive us, because the next run would collide with it. Linux sends
	// the parent-death signal when the thread that started the child ends.
	runtime.LockOSThread()
	cmd := exec.Command("/proc/self/exe", os.Args[1:]...)
	cmd.Env = append(os.Environ(), insideVariable+"=yes")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
	err := cmd.Run()
	var failed *exec.ExitError
	if errors.As(err, &failed) {
		return failed.ExitCode(), endAll() // it may have reached its timeout
	}
	if err != nil {
		return 0, fmt.Errorf("cannot run in private mounts, which needs root: %w", err)
	}
	return 0, nil
}

func buildComponents() error {
	root, err1 := localcluster.FindCheckout(".")
	versions, err2 := setup.Load()
	cache, err3 := components.UserCache(root)
	if err := errors.Join(err1, err2, err3); err != nil {
		return err
	}
	_, err := cache.Get(context.Background(), os.Stderr, components.Node(versions)...)
	return err
}

func inside(m *testing.M) (int, error) {
	if err := prepare(); err != nil {
		return 0, err
	}
	code := m.Run()
	if err := endAll(); err != nil {
		return code, err
	}
	left, err := leaks()
	if err == nil && left != nil {
		err = fmt.Errorf("the tests' clusters have left behind %q", left)
	}
	return code, err
}

// prepare cleans up after an earlier run, and creates the command and the disks.
func prepare() error {
	var err error
	if checkout, err = localcluster.FindCheckout("."); err != nil {
		return err
	}
	if err := endAll(); err != nil {
		return err
	}
	if leftByOthers, err = leaks(); err != nil {
		return err
	}
	for _, m := range modes {
		if err := mountDisk(m.disk(), roomy); err != nil {
			return err
		}
	}
	built, err := filecache.UserDir()
	if err != nil {
		return err
	}
	if err := cover(built, built); err != nil {
		return err
	}
	build := exec.Command("go", "build", "-o", root+"/", "./tools/localcluster/cmd", "./test/workload")
	build.Dir = checkout
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("cannot build the command: %w\n%s", err, out)
	}
	return nil
}

// cover mounts an overlay of a folder at a path. Changes there are visible only in our mounts.
func cover(folder, at string) error {
	changes, err := os.MkdirTemp(root, "changes-")
	if err != nil {
		return err
	}
	upper, work := filepath.Join(changes, "upper"), filepath.Join(changes, "work")
	if err := errors.Join(os.Mkdir(upper, 0o755), os.Mkdir(work, 0o755), os.MkdirAll(at, 0o755)); err != nil {
		return err
	}
	if err := unix.Mount("overlay", at, "overlay", 0, "lowerdir="+folder+",upperdir="+upper+",workdir="+work); err != nil {
		return fmt.Errorf("cannot mount a changeable copy of %s: %w", folder, err)
	}
	return nil
}

func localclusterProgram() string { return filepath.Join(root, "cmd") }
func workload() string            { return filepath.Join(root, "workload") }

// endAll kills the keepers below our folder, and removes the folder and the cgroups of its
// clusters. After a killed run, the folder may have disappeared with that run's mounts, so that
// the command cannot do this.
func endAll() error {
	commands, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range commands {
		command, _ := os.ReadFile(file)
		var pid int
		_, err := fmt.Sscanf(file, "/proc/%d/", &pid)
		if err == nil && strings.HasPrefix(string(command), root+"/") && strings.Contains(string(command), "/bin/keeper\x00") {
			if err := unix.Kill(pid, unix.SIGKILL); err != nil {
				return fmt.Errorf("cannot end keeper %d: %w", pid, err)
			}
		}
	}
	for _, c := range everyCluster() {
		if err := c.described().Down(); err != nil {
			return err
		}
	}
	for _, m := range modes {
		_ = unix.Unmount(m.disk(), unix.MNT_DETACH) // fails if it is not mounted
	}
	_ = unix.Unmount(other, unix.MNT_DETACH) // likewise
	return os.RemoveAll(root)
}
