// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Down stops the cluster and removes everything of it: processes, mounts, network,
// cgroups and files. It also removes cgroups that stopped clusters of the same name left
// behind, even if their folders were elsewhere. It succeeds if there is no such cluster.
func (c *Cluster) Down() error {
	unlock, err := c.lock()
	if err != nil {
		return err
	}
	defer unlock()
	defer os.Remove(c.lockFile()) // while we hold it
	exists, abandoned := c.exists(), c.abandoned()
	if !exists && len(abandoned) == 0 {
		fmt.Fprintf(c.progress, "there is no cluster %q\n", c.config.Name)
		return nil
	}
	if err := c.stop(); err != nil {
		return err
	}
	if err := errors.Join(c.removeRemains(), os.RemoveAll(c.newDir()), clearCgroups(abandoned)); err != nil {
		return err
	}
	fmt.Fprintf(c.progress, "cluster %q is gone\n", c.config.Name)
	return nil
}

// abandoned are the cgroups of clusters of this name, in any folder, that do not run.
// Leaks lists them, and only Down removes them.
func (c *Cluster) abandoned() []string {
	return newScan(c.config, c.host).cgroupsLeft(cgroupPrefix + c.config.Name + "-" + strings.Repeat("[0-9a-f]", 8))
}

// exists reports whether anything of the cluster exists, running or not.
func (c *Cluster) exists() bool {
	for _, dir := range []string{c.Dir(), c.newDir()} {
		if _, err := os.Lstat(dir); err == nil {
			return true
		}
	}
	return len(cgroupsNamed(c.host.cgroups, c.cgroup())) > 0
}

// stop kills the keeper, and thereby every process of the cluster, and removes their
// cgroups. The folder stays: its logs may explain a failure.
func (c *Cluster) stop() error {
	keeper, alive := c.host.proc.keeperOf(c.Dir())
	if !alive {
		return nil
	}
	if err := syscall.Kill(keeper.PID, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("cannot kill the cluster's keeper, process %d: %w", keeper.PID, err)
	}
	if !eventually(30*time.Second, func() bool { return !c.Running() }) {
		return fmt.Errorf("the cluster's keeper, process %d, did not exit within 30s", keeper.PID)
	}
	return c.clearCgroups()
}

func (c *Cluster) clearCgroups() error { return clearCgroups(cgroupsNamed(c.host.cgroups, c.cgroup())) }

// clearCgroups removes the cgroups of a stopped cluster.
func clearCgroups(tops []string) error {
	// The kernel empties a cgroup shortly after its last process has exited.
	if !eventually(30*time.Second, func() bool { return removeCgroups(tops) == nil }) {
		return fmt.Errorf("cannot remove the cluster's cgroups: %w", removeCgroups(tops))
	}
	return nil
}

// removeRemains removes the cgroups and files of a stopped cluster.
func (c *Cluster) removeRemains() error {
	if err := c.clearCgroups(); err != nil {
		return err
	}
	if err := os.RemoveAll(c.Dir()); err != nil {
		return fmt.Errorf("cannot remove the cluster's folder: %w", err)
	}
	return nil
}

// removeCgroups removes cgroups, children first.
func removeCgroups(tops []string) error {
	var errs []error
	for _, top := range tops {
		var dirs []string
		err := filepath.WalkDir(top, func(path string, entry fs.DirEntry, err error) error {
			if err == nil && entry.IsDir() {
				dirs = append(dirs, path)
			}
			return nil
		})
		errs = append(errs, err)
		slices.Reverse(dirs)
		for _, dir := range dirs {
			if err := unix.Rmdir(dir); err != nil && !errors.Is(err, unix.ENOENT) {
				errs = append(errs, fmt.Errorf("%s: %w", dir, err))
			}
		}
	}
	return errors.Join(errs...)
}

// cgroupsNamed finds the top cgroups that match a name or pattern, in the one
// unified hierarchy or in each controller's.
func cgroupsNamed(root, pattern string) []string {
	var found []string
	for _, glob := range []string{filepath.Join(root, pattern), filepath.Join(root, "*", pattern)} {
		matches, _ := filepath.Glob(glob) // the only error is a bad pattern
		found = append(found, matches...)
	}
	return found
}

func eventually(timeout time.Duration, condition func() bool) bool {
	for deadline := time.Now().Add(timeout); ; time.Sleep(50 * time.Millisecond) {
		if condition() {
			return true
		}
		if time.Now().After(deadline) {
			return false
		}
	}
}
