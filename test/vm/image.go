// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/mlbatch/mlbatch/tools/artifacts/filecache"
	"github.com/mlbatch/mlbatch/tools/artifacts/subprocess"
)

// Packages of a stock Debian in addition to the essential and important ones.
var packages = []string{"apparmor", "dbus", "linux-image-amd64", "systemd-sysv", "udev"}

// diskSize is enough for Debian (1 GiB), the cluster and what it compiles. The file is sparse.
const diskSize = "12G"

// disk is what a machine boots from.
type disk struct{ image, kernel, initrd string }

// archive returns a Debian release as one file, which is created only once.
func (s site) archive(ctx context.Context, release string) (string, error) {
	entry := filecache.Entry{
		Path: filepath.Join(s.cache, "debian-"+release+"-1"), Title: "Debian " + release,
		Fill: func(dir string) error {
			return s.tool(ctx, "mmdebstrap", "--variant=important", "--include="+strings.Join(packages, ","), release, filepath.Join(dir, archiveFile))
		},
	}
	return filepath.Join(entry.Path, archiveFile), entry.Get(ctx, os.Stderr)
}

const archiveFile = "root.tar"

// makeDisk unpacks a release, configures its mounts and its service, and makes a disk of it.
func (s site) makeDisk(ctx context.Context, release string) (disk, error) {
	archive, err := s.archive(ctx, release)
	if err != nil {
		return disk{}, err
	}
	root := filepath.Join(s.scratch, release)
	defer os.RemoveAll(root)
	if err := os.Mkdir(root, 0o755); err != nil {
		return disk{}, fmt.Errorf("cannot unpack Debian %s: %w", release, err)
	}
	if err := s.tool(ctx, "tar", "--extract", "--numeric-owner", "--xattrs", "--file", archive, "--directory", root); err != nil {
		return disk{}, err
	}
	if err := settle(root, s.shares); err != nil {
		return disk{}, fmt.Errorf("cannot prepare Debian %s: %w", release, err)
	}
	d := disk{image: root + ".ext4", kernel: root + ".kernel", initrd: root + ".initrd"}
	for to, pattern := range map[string]string{d.kernel: "vmlinuz-*", d.initrd: "initrd.img-*"} {
		if err := moveOnly(filepath.Join(root, "boot"), pattern, to); err != nil {
			return disk{}, fmt.Errorf("cannot find what Debian %s boots: %w", release, err)
		}
	}
	return d, s.tool(ctx, "mke2fs", "-q", "-t", "ext4", "-d", root, d.image, diskSize)
}

// moveOnly moves the one file that matches a pattern.
func moveOnly(dir, pattern, to string) error {
	found, _ := filepath.Glob(filepath.Join(dir, pattern)) // the only error is a bad pattern
	if len(found) != 1 {
		return fmt.Errorf("there are %d files %s, want 1", len(found), pattern)
	}
	return os.Rename(found[0], to)
}

const units = "etc/systemd/system"

// settle adds the configuration of this machine to a stock Debian: its mounts and one service.
func settle(root string, shares []share) error {
	for name, content := range map[string]string{"etc/fstab": fstab(shares), filepath.Join(units, serviceName): service(shares)} {
		if err := os.WriteFile(filepath.Join(root, name), []byte(content), 0o644); err != nil {
			return err
		}
	}
	wants := filepath.Join(root, units, "multi-user.target.wants")
	if err := os.MkdirAll(wants, 0o755); err != nil {
		return err
	}
	if err := os.Symlink("../"+serviceName, filepath.Join(wants, serviceName)); err != nil { // systemd ignores plain files
		return err
	}
	for _, dir := range []string{changed, working} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			return err
		}
	}
	return nil
}

// tool runs a Debian program to its end in a private mount namespace. An interrupted mmdebstrap
// leaves mounts, through which removing its folder would reach this machine's devices.
func (s site) tool(ctx context.Context, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
	cmd.Env = append(os.Environ(), "TMPDIR="+s.scratch, "LC_ALL=C")
	if err := subprocess.Run(ctx, cmd); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}
