// SPDX-License-Identifier: Apache-2.0

// Package localcluster_test answers whether the local cluster survives what
// happens to one: programs, commands and its keeper that are killed at any point,
// full disks, other commands at the same time, other versions. It does so to real
// clusters, with the mlbatch command that users have. It needs root.
package localcluster_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/mlbatch/mlbatch/tools/localcluster"
)

// insideVariable is set in the process that runs the tests.
const insideVariable = "MLBATCH_TEST_PRIVATE_MOUNTS"

// The tests' clusters are below one folder, so that the next run finds what one
// that was killed has left. Each part is for XDG_STATE_HOME.
var (
	root = filepath.Join(os.TempDir(), "mlbatch-test-clusters")
	disk = filepath.Join(root, "disk") // a disk of our own, which the tests fill
	home = filepath.Join(root, "home")
)

// checkout is this repository.
var checkout string

// TestMain runs the tests in a process with private mounts: what they mount is
// gone with it, however it ends.
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

func outside(*testing.M) (int, error) {
	cmd := exec.Command("/proc/self/exe", os.Args[1:]...)
	cmd.Env = append(os.Environ(), insideVariable+"=yes")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
	err := cmd.Run()
	var failed *exec.ExitError
	if errors.As(err, &failed) {
		return failed.ExitCode(), nil
	}
	if err != nil {
		return 0, fmt.Errorf("cannot run in private mounts, which needs root: %w", err)
	}
	return 0, nil
}

func inside(m *testing.M) (int, error) {
	if err := prepare(); err != nil {
		return 0, err
	}
	code := m.Run()
	return code, endAll()
}

// prepare ends what an earlier run has left, and makes the command and the disk.
func prepare() error {
	var err error
	if checkout, err = localcluster.FindCheckout("."); err != nil {
		return err
	}
	if err := errors.Join(endAll(), os.MkdirAll(disk, 0o755)); err != nil {
		return err
	}
	if err := unix.Mount("tmpfs", disk, "tmpfs", 0, "size=4g"); err != nil {
		return fmt.Errorf("cannot mount a disk in memory: %w", err)
	}
	build := exec.Command("go", "build", "-o", mlbatch(), "./tools/mlbatch")
	build.Dir = checkout
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("cannot build the command: %w\n%s", err, out)
	}
	return nil
}

func mlbatch() string { return filepath.Join(root, "mlbatch") }

// endAll ends the keepers below our folder, and removes it with the cgroups of
// its clusters. The folder itself may be gone from sight with an earlier run's
// mounts, so that the command could not do it.
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
	_ = unix.Unmount(disk, unix.MNT_DETACH) // if it was mounted
	return os.RemoveAll(root)
}
