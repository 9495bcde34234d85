// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// show mounts a file or a folder over one that it makes.
func show(source, target string) error {
	info, err := os.Stat(source)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
		return err
	}
	if info.IsDir() {
		err = os.MkdirAll(target, 0o755)
	} else {
		err = os.WriteFile(target, nil, 0o644)
	}
	if err != nil {
		return err
	}
	return unix.Mount(source, target, "", unix.MS_BIND|unix.MS_REC, "")
}

// changeRoot leaves nothing of the machine but its /dev and /proc.
func changeRoot(o order) error {
	if err := os.MkdirAll(filepath.Join(o.Root, "tmp"), 0o755); err != nil {
		return err
	}
	if err := unix.Sethostname([]byte(o.Host)); err != nil {
		return fmt.Errorf("cannot set the pod's host name: %w", err)
	}
	if err := unix.Chroot(o.Root); err != nil {
		return fmt.Errorf("cannot enter the root folder: %w", err)
	}
	if err := os.Chdir(o.Dir); err != nil {
		return fmt.Errorf("cannot enter the working directory: %w", err)
	}
	return nil
}
