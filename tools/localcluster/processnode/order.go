// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"syscall"

	"github.com/vishvananda/netlink"
)

// enterArgument makes this program become a container. It reads its order from orderFD once
// its network interface exists.
const (
	enterArgument = "enter"
	orderFD       = 3
)

// order describes a container process to the program that becomes it.
type order struct {
	// Root is an empty folder that becomes the root. All paths but sources are inside it.
	Root    string
	Mounts  []mount
	Address string // with the prefix length
	Host    string
	Dir     string
	Args    []string
	Env     []string
}

// mount mounts a file or folder of the node at a path of the container.
type mount struct{ Source, Target string }

// podInterface is the name of the interface inside the pod.
const podInterface = "eth0"

// start runs an order in its own namespaces, and logs its output.
func (n *node) start(o order, log *os.File) (*exec.Cmd, error) {
	read, write, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer read.Close()
	defer write.Close()
	cmd := exec.Command("/proc/self/exe", enterArgument)
	cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = log, log, []*os.File{read}
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Setsid: true,
		// When the program exits, its PID namespace kills everything that it started. We are
		// process 1 of the outer PID namespace, so no pod outlives us. Pdeathsig cannot
		// guarantee that: it is set for one thread, and is lost when Go calls exec in another.
		Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWNET | syscall.CLONE_NEWUTS | syscall.CLONE_NEWPID,
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	if err = n.attach(cmd.Process.Pid); err == nil {
		err = json.NewEncoder(write).Encode(o)
	}
	if err != nil {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		return nil, err
	}
	return cmd, nil
}

// bridgeEnd names the bridge's end of a pair of interfaces. A pid would not be
// unique: the next processnode has the same pids, and the kernel may still be
// removing the interfaces of the last one.
func bridgeEnd() string { return "pod" + rand.Text()[:12] }

// attach connects a process's network to the bridge. The kernel removes the interfaces when
// the process exits.
func (n *node) attach(pid int) error {
	bridge, err := netlink.LinkByName(n.bridge)
	if err != nil {
		return err
	}
	pair := &netlink.Veth{
		LinkAttrs: netlink.LinkAttrs{Name: bridgeEnd(), MasterIndex: bridge.Attrs().Index},
		PeerName:  podInterface, PeerNamespace: netlink.NsPid(pid),
	}
	if err := netlink.LinkAdd(pair); err != nil {
		return fmt.Errorf("cannot connect the pod to the bridge: %w", err)
	}
	return netlink.LinkSetUp(pair)
}
