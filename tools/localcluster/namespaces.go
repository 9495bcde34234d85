// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
)

// namespaces returns the attributes that start a keeper in its namespaces. Users other than root
// also get a user namespace, in which they are root.
func (h host) namespaces() *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{
		Setsid:     true,
		Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWNET | syscall.CLONE_NEWPID | syscall.CLONE_NEWUTS | syscall.CLONE_NEWIPC,
	}
	if h.user != 0 {
		attr.Cloneflags |= syscall.CLONE_NEWUSER
		attr.UidMappings = []syscall.SysProcIDMap{{HostID: h.user, Size: 1}}
		attr.GidMappings = []syscall.SysProcIDMap{{HostID: os.Getegid(), Size: 1}}
	}
	return attr
}

// checkNamespaces tries to create the namespaces of a keeper, and to mount in them: some machines
// allow the namespaces but give no rights in them. In a container, root may have neither.
func (c *Cluster) checkNamespaces() error {
	attr := c.host.namespaces()
	attr.Unshareflags = syscall.CLONE_NEWNS // lets Go make the mounts private
	err := c.host.try(attr)
	if err == nil {
		return nil
	}
	var why syscall.Errno
	if errors.As(err, &why) {
		err = why
	}
	if c.host.user == 0 {
		return fmt.Errorf("root may not create namespaces and mount in them here (%w); in a container, start that container with --privileged", err)
	}
	return fmt.Errorf("user %d may not create user namespaces and mount in them on this machine (%w); run the command with sudo, or ask an administrator to allow them "+
		"with sysctl: user.max_user_namespaces=10000 and, where they exist, kernel.unprivileged_userns_clone=1 and "+
		"kernel.apparmor_restrict_unprivileged_userns=0; in a container, start that container with --privileged", c.host.user, err)
}

// tryProgram runs a program that mounts /proc, as a keeper does: containers refuse that if they
// hide a part of theirs.
func tryProgram(attr *syscall.SysProcAttr) error {
	cmd := exec.Command("/bin/sh", "-c", "! command -v mount >/dev/null || exec mount -t proc proc /proc")
	var said bytes.Buffer
	cmd.SysProcAttr, cmd.Stderr, cmd.Env = attr, &said, append(os.Environ(), "LC_ALL=C")
	err := cmd.Run()
	if first, _, _ := strings.Cut(said.String(), "\n"); err != nil && first != "" {
		return errors.New(strings.TrimSuffix(first, "."))
	}
	return err
}
