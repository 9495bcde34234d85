// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Down ends the cluster and removes all of it: processes, mounts, network,
// cgroups and files. A cluster that does not exist is no error.
func (c *Cluster) Down() error {
	unlock, err := c.lock()
	if err != nil {
		return err
	}
	defer unlock()
	if err := c.stop(); err != nil {
		return err
	}
	if err := c.removeRemains(); err != nil {
		return err
	}
	fmt.Fprintf(c.progress, "cluster %q is gone\n", c.config.Name)
	return nil
}

// stop ends the keeper, and with it every process of the cluster. The folder
// stays: its logs may explain a failure.
func (c *Cluster) stop() error {
	keeper, alive := keeperOf(c.Dir())
	if !alive {
		return nil
	}
	if err := syscall.Kill(keeper.PID, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("cannot end the cluster's keeper, process %d: %w", keeper.PID, err)
	}
	if !eventually(30*time.Second, func() bool { return !c.Running() }) {
		return fmt.Errorf("the cluster's keeper, process %d, did not end in 30 s", keeper.PID)
	}
	return nil
}

// removeRemains removes the cgroups and files of a cluster that has ended.
func (c *Cluster) removeRemains() error {
	// The kernel empties a cgroup a moment after its last process has died.
	if !eventually(30*time.Second, func() bool { return removeCgroups(c.cgroup()) == nil }) {
		return fmt.Errorf("cannot remove the cluster's cgroups: %w", removeCgroups(c.cgroup()))
	}
	if err := os.RemoveAll(c.Dir()); err != nil {
		return fmt.Errorf("cannot remove the cluster's folder: %w", err)
	}
	return nil
}

// removeCgroups removes every cgroup of that name, children first.
func removeCgroups(name string) error {
	var errs []error
	for _, root := range cgroupsNamed(name) {
		var dirs []string
		err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
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
func cgroupsNamed(pattern string) []string {
	var found []string
	for _, glob := range []string{"/sys/fs/cgroup/" + pattern, "/sys/fs/cgroup/*/" + pattern} {
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
