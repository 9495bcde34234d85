// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// checkCgroups returns an error if the cluster may not create cgroups. Containers without
// privileges see theirs read-only.
func (c *Cluster) checkCgroups() error {
	dir := filepath.Join(c.host.cgroups, "memory") // of v1, where the parent may always be read-only
	if _, err := os.Stat(dir); err != nil {
		dir = c.host.cgroups
	}
	if err := unix.Access(dir, unix.W_OK); err != nil {
		return fmt.Errorf("cannot create cgroups in %s (%w); in a container, start that container with --privileged", dir, err)
	}
	return nil
}

// checkLayers returns an error if the cluster's folder is on an overlay: images are layers of
// another one, which the kernel does not put there.
func (c *Cluster) checkLayers() error {
	disk, err := c.host.disk(c.config.StateDir)
	if err != nil || !disk.overlay {
		return err
	}
	state := filepath.Dir(filepath.Dir(c.config.StateDir))
	return fmt.Errorf("the folder %s is on an overlay file system, as all of a container is, and images cannot be unpacked there; "+
		"start the container with a volume for it (--volume mlbatch:%s), or choose a folder on another disk with XDG_STATE_HOME, "+
		"or use simulated nodes only (localcluster up --mode=simulated)", c.config.StateDir, state)
}

// emptyCgroup moves the processes of a container's cgroup into one below it, as Docker in Docker
// does. A container starts with all of its processes in there, and a cgroup of v2 passes
// controllers on only while it has none. The keeper cannot do that: it does not see them.
func emptyCgroup(root string) error {
	// Every cgroup of v2 has this file but the machine's first, which may have processes.
	if _, err := os.Stat(filepath.Join(root, "cgroup.type")); err != nil {
		return nil
	}
	below := filepath.Join(root, "init")
	for range 10 { // more may have started
		all, err := os.ReadFile(filepath.Join(root, "cgroup.procs"))
		if err != nil || len(bytes.TrimSpace(all)) == 0 {
			return err
		}
		if err := os.MkdirAll(below, 0o755); err != nil {
			return fmt.Errorf("cannot create the cgroup %s: %w", below, err)
		}
		if err := moveProcesses(bytes.Fields(all), filepath.Join(below, "cgroup.procs")); err != nil {
			return err
		}
	}
	return nil // the keeper says that there are some
}

func moveProcesses(pids [][]byte, to string) error {
	for _, pid := range pids {
		if string(pid) == "0" { // one of outside the container
			continue
		}
		if err := os.WriteFile(to, pid, 0o644); err != nil && !errors.Is(err, unix.ESRCH) {
			return fmt.Errorf("cannot move process %s to another cgroup: %w", pid, err)
		}
	}
	return nil
}
