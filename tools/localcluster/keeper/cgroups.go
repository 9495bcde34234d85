// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/mlbatch/mlbatch/tools/localcluster/plan"
)

// makeCgroups creates the cgroup for pods, on hosts with one unified hierarchy (v2) and on hosts
// with one hierarchy per controller (v1).
func makeCgroups(p plan.Plan) error {
	if p.Cgroup == "" {
		return nil
	}
	const root = "/sys/fs/cgroup"
	var fs unix.Statfs_t
	if err := unix.Statfs(root, &fs); err != nil {
		return fmt.Errorf("cannot look at %s: %w", root, err)
	}
	if fs.Type == unix.CGROUP2_SUPER_MAGIC {
		return makeUnified(root, p.Cgroup)
	}
	return makePerController(root, p.Cgroup)
}

func makeUnified(root, name string) error {
	available, err := os.ReadFile(filepath.Join(root, "cgroup.controllers"))
	if err != nil {
		return fmt.Errorf("cannot read the cgroup controllers: %w", err)
	}
	dir := filepath.Join(root, name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("cannot make cgroup %s: %w", name, err)
	}
	for _, controller := range strings.Fields(string(available)) {
		for _, parent := range []string{root, dir} {
			err := os.WriteFile(filepath.Join(parent, "cgroup.subtree_control"), []byte("+"+controller), 0o644)
			if err := explainHandOn(parent, controller, err); err != nil {
				return err
			}
		}
	}
	return nil
}

// explainHandOn explains the kernel's error when a controller cannot be enabled for child cgroups.
func explainHandOn(parent, controller string, err error) error {
	switch {
	case errors.Is(err, unix.EBUSY):
		return fmt.Errorf("cgroup %s holds processes of its own, so its controllers cannot be delegated: "+
			"run the command in a container with a cgroup namespace whose root is empty, or on the host", parent)
	case err != nil && needed(controller):
		return fmt.Errorf("cannot enable the cgroup controller %s: %w", controller, err)
	default: // a controller that cannot be delegated (rdma, misc) is not needed
		return nil
	}
}

func needed(controller string) bool {
	return strings.Contains(" cpu cpuset memory pids io ", " "+controller+" ")
}

func makePerController(root, name string) error {
	for _, controller := range []string{"cpu", "cpuacct", "cpuset", "memory", "devices", "freezer", "blkio", "pids", "systemd"} {
		hierarchy := filepath.Join(root, controller)
		if _, err := os.Stat(hierarchy); err != nil {
			continue // mounted together with another one, or not in this kernel
		}
		dir := filepath.Join(hierarchy, name)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return fmt.Errorf("cannot make cgroup %s of %s: %w", name, controller, err)
		}
		if controller != "cpuset" {
			continue
		}
		if err := inheritCPUs(hierarchy, dir); err != nil {
			return fmt.Errorf("cannot set up cgroup %s of cpuset: %w", name, err)
		}
	}
	return nil
}

// inheritCPUs copies the parent's processors and memory nodes: a v1 cpuset
// starts with none and then refuses every process.
func inheritCPUs(parent, dir string) error {
	for _, file := range []string{"cpuset.cpus", "cpuset.mems"} {
		value, err := os.ReadFile(filepath.Join(parent, file))
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, file), value, 0o644); err != nil {
			return err
		}
	}
	return nil
}
