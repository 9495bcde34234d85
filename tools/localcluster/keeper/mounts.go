// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"

	"github.com/mlbatch/mlbatch/tools/localcluster/plan"
)

// mountNode gives the node its own /proc, an empty /run, and the plan's folders at host
// paths that programs have hard-coded. It first mounts an empty tmpfs over their parents,
// so that nothing is created on the host.
func mountNode(p plan.Plan) error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("cannot make mounts private: %w", err)
	}
	if err := unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return fmt.Errorf("cannot mount the node's /proc: %w", err)
	}
	if err := bindAll(p.Binds); err != nil {
		return err
	}
	for _, b := range p.Sysctls {
		if err := unix.Mount(b.Source, b.Target, "", unix.MS_BIND, ""); err != nil {
			return fmt.Errorf("cannot keep the node from changing %s: %w", b.Target, err)
		}
	}
	// Mounts must propagate between kubelet and containerd.
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_SHARED, ""); err != nil {
		return fmt.Errorf("cannot share mounts within the node: %w", err)
	}
	return nil
}

func bindAll(binds []plan.Bind) error {
	sources := make([]*os.File, len(binds))
	for i, b := range binds {
		// Open sources first: they may be below a parent that gets covered.
		f, err := os.Open(b.Source)
		if err != nil {
			return fmt.Errorf("cannot open the node's folder: %w", err)
		}
		defer f.Close()
		sources[i] = f
	}
	for _, parent := range parents(binds) {
		if err := detachBelow(parent, binds); err != nil {
			return err
		}
		if err := unix.Mount("tmpfs", parent, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=755"); err != nil {
			return fmt.Errorf("cannot cover %s: %w", parent, err)
		}
	}
	for i, b := range binds {
		if err := os.MkdirAll(b.Target, 0o755); err != nil {
			return fmt.Errorf("cannot make %s: %w", b.Target, err)
		}
		source := fmt.Sprintf("/proc/self/fd/%d", sources[i].Fd())
		if err := unix.Mount(source, b.Target, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
			return fmt.Errorf("cannot mount %s: %w", b.Target, err)
		}
	}
	return os.MkdirAll("/run/lock", 0o755)
}

// detachBelow detaches what is mounted below a folder that is to be covered, as containers have /run/.containerenv.
// The kubelet takes the first mount of a device for its size, and a mount that it cannot see has none. In a user
// namespace, mounts of the host are locked, and stay. Those with the sources of binds stay, too.
func detachBelow(parent string, binds []plan.Bind) error {
	mounts, err := mountinfo.GetMounts(mountinfo.PrefixFilter(parent))
	if err != nil {
		return fmt.Errorf("cannot list mounts below %s: %w", parent, err)
	}
	for _, m := range mounts {
		holds := func(b plan.Bind) bool { return strings.HasPrefix(b.Source, m.Mountpoint+"/") }
		if m.Mountpoint == parent || slices.ContainsFunc(binds, holds) {
			continue
		}
		err := unix.Unmount(m.Mountpoint, unix.MNT_DETACH)
		if err != nil && !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOENT) { // locked, or gone with its parent
			return fmt.Errorf("cannot detach %s: %w", m.Mountpoint, err)
		}
	}
	return nil
}

// parents are the parent folders of binds, and /run.
func parents(binds []plan.Bind) []string {
	all := []string{"/run"}
	for _, b := range binds {
		if dir := filepath.Dir(b.Target); !slices.Contains(all, dir) {
			all = append(all, dir)
		}
	}
	return all
}
