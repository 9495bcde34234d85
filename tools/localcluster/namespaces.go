// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
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

// checkNamespaces tries to create the namespaces for a user other than root, and to mount
// in them: some machines allow the namespace but give no rights in it.
func (c *Cluster) checkNamespaces() error {
	if c.host.user == 0 {
		return nil
	}
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
	return fmt.Errorf("user %d may not create user namespaces on this machine (%w); run the command with sudo, or ask an administrator to allow them "+
		"with sysctl: user.max_user_namespaces=10000 and, where they exist, kernel.unprivileged_userns_clone=1 and "+
		"kernel.apparmor_restrict_unprivileged_userns=0", c.host.user, err)
}

// tryProgram runs a program that does nothing.
func tryProgram(attr *syscall.SysProcAttr) error {
	cmd := exec.Command("/bin/sh", "-c", ":")
	cmd.SysProcAttr = attr
	return cmd.Run()
}
