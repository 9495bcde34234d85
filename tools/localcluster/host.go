// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// host is the machine that a cluster runs on.
type host struct {
	system  string // as runtime.GOOS names it
	user    int    // the effective user's id
	proc    proc
	cgroups string // where the cgroup hierarchies are mounted
	// modprobe loads a kernel module.
	modprobe string
	// try starts something in namespaces, and mounts there.
	try func(*syscall.SysProcAttr) error
	// disk returns the disk that a folder is on, or will be.
	disk func(dir string) (disk, error)
}

// disk is a file system: folders with the same id share its free space.
type disk struct {
	id      uint64
	free    uint64 // bytes available to unprivileged users
	overlay bool   // like a container's own, and no place for the layers of another
}

func thisHost() host {
	return host{
		system: runtime.GOOS, user: os.Geteuid(),
		proc: "/proc", cgroups: "/sys/fs/cgroup", modprobe: "/sbin/modprobe", try: tryProgram, disk: diskOf,
	}
}

func diskOf(dir string) (disk, error) {
	var fs unix.Statfs_t
	var folder unix.Stat_t
	there := existingParent(dir)
	err := unix.Statfs(there, &fs)
	if err == nil {
		err = unix.Stat(there, &folder)
	}
	if err != nil {
		return disk{}, fmt.Errorf("cannot read the free space of %s: %w", dir, err)
	}
	return disk{id: folder.Dev, free: fs.Bavail * uint64(fs.Bsize), overlay: fs.Type == unix.OVERLAYFS_SUPER_MAGIC}, nil
}

// existingParent is the part of a path that exists: the rest will be created on its disk.
func existingParent(path string) string {
	for path != filepath.Dir(path) {
		if _, err := os.Stat(path); err == nil {
			break
		}
		path = filepath.Dir(path)
	}
	return path
}
