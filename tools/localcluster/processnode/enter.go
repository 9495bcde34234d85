// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// enter turns this process into the ordered container process.
func enter(orders *os.File) error {
	var o order
	if err := json.NewDecoder(orders).Decode(&o); err != nil {
		return fmt.Errorf("cannot read the order: %w", err)
	}
	orders.Close()
	for _, step := range []func(order) error{joinNetwork, mountRoot, changeRoot} {
		if err := step(o); err != nil {
			return err
		}
	}
	return fmt.Errorf("cannot run %s: %w", o.Args[0], unix.Exec(o.Args[0], o.Args, o.Env))
}

func joinNetwork(o order) error {
	address, err := netlink.ParseAddr(o.Address)
	if err != nil {
		return fmt.Errorf("cannot read the pod's address: %w", err)
	}
	for _, name := range []string{"lo", podInterface} {
		link, err := netlink.LinkByName(name)
		if err == nil && name == podInterface {
			err = netlink.AddrAdd(link, address)
		}
		if err == nil {
			err = netlink.LinkSetUp(link)
		}
		if err != nil {
			return fmt.Errorf("cannot bring up the interface %s: %w", name, err)
		}
	}
	return nil
}

func mountRoot(o order) error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("cannot make mounts private: %w", err)
	}
	if err := unix.Mount("tmpfs", o.Root, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=755"); err != nil {
		return fmt.Errorf("cannot mount the root folder: %w", err)
	}
	for _, m := range o.Mounts {
		if err := show(m.Source, o.Root+m.Target); err != nil {
			return fmt.Errorf("cannot mount %s: %w", m.Target, err)
		}
	}
	return mountProcesses(o.Root + "/proc")
}

// mountProcesses mounts the /proc of the pod's PID namespace: the node's has other pids.
func mountProcesses(target string) error {
	if err := os.MkdirAll(target, 0o755); err != nil {
		return err
	}
	if err := unix.Mount("proc", target, "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return fmt.Errorf("cannot mount the pod's /proc: %w", err)
	}
	return nil
}

// show creates target and mounts source over it.
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

// changeRoot hides everything of the host but its /dev.
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
