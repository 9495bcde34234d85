// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"net"
	"os"

	"github.com/vishvananda/netlink"

	"github.com/mlbatch/mlbatch/tools/localcluster/plan"
)

// makeNetwork brings up the loopback interface and the bridge for pods. The bridge has the
// node's address.
func makeNetwork(p plan.Plan) error {
	lo, err := netlink.LinkByName("lo")
	if err == nil {
		err = netlink.LinkSetUp(lo)
	}
	if err != nil {
		return fmt.Errorf("cannot bring up the loopback interface: %w", err)
	}
	if err := makeBridge(p.Network); err != nil {
		return fmt.Errorf("cannot make the bridge %s: %w", p.Network.Bridge, err)
	}
	if p.Network.Services == "" {
		return nil
	}
	return setSysctls()
}

func makeBridge(n plan.Network) error {
	bridge := &netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: n.Bridge}}
	if err := netlink.LinkAdd(bridge); err != nil {
		return err
	}
	addr, err := netlink.ParseAddr(n.Address)
	if err != nil {
		return err
	}
	if err := netlink.AddrAdd(bridge, addr); err != nil {
		return err
	}
	if err := netlink.LinkSetUp(bridge); err != nil {
		return err
	}
	if n.Services == "" {
		return nil
	}
	_, services, err := net.ParseCIDR(n.Services)
	if err != nil {
		return err
	}
	return netlink.RouteAdd(&netlink.Route{LinkIndex: bridge.Attrs().Index, Dst: services})
}

// setSysctls lets the node forward packets, and lets kube-proxy see traffic between two
// pods on the bridge: otherwise replies bypass the reverse translation.
func setSysctls() error {
	const bridged = "/proc/sys/net/bridge/bridge-nf-call-iptables"
	for _, path := range []string{"/proc/sys/net/ipv4/ip_forward", bridged} {
		err := os.WriteFile(path, []byte("1"), 0o644)
		if path == bridged && errors.Is(err, os.ErrNotExist) {
			return errors.New("the kernel module br_netfilter is not loaded: run 'modprobe br_netfilter' and try again")
		}
		if err != nil {
			return fmt.Errorf("cannot set %s: %w", path, err)
		}
	}
	return nil
}
