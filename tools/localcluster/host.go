// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"fmt"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// host is what a cluster sees of the machine that it runs on.
type host struct {
	system  string // as runtime.GOOS names it
	user    int    // the effective user's id
	proc    proc
	cgroups string // where the cgroup hierarchies are mounted
	// free tells how many bytes a user may still write to the disk of a folder.
	free func(dir string) (uint64, error)
}

func thisHost() host {
	return host{
		system: runtime.GOOS, user: os.Geteuid(),
		proc: "/proc", cgroups: "/sys/fs/cgroup", free: freeSpace,
	}
}

func freeSpace(dir string) (uint64, error) {
	var fs unix.Statfs_t
	if err := unix.Statfs(dir, &fs); err != nil {
		return 0, fmt.Errorf("cannot look at the disk of %s: %w", dir, err)
	}
	return fs.Bavail * uint64(fs.Bsize), nil
}
