// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"net/netip"
	"sync"
)

// firstPod is the offset of the first pod's address; the node uses those below.
const firstPod = 10

// addresses hands out the addresses of pods.
type addresses struct {
	node  netip.Addr
	bits  int // the length of the network's prefix
	pods  netip.Prefix
	mu    sync.Mutex
	taken map[netip.Addr]bool
}

// newAddresses reads the node's address, with the length of the network's prefix, and the part of the
// network that is for its pods.
func newAddresses(node, pods string) (*addresses, error) {
	network, err := netip.ParsePrefix(node)
	if err != nil {
		return nil, fmt.Errorf("cannot read the node's address: %w", err)
	}
	a := &addresses{node: network.Addr(), bits: network.Bits(), taken: map[netip.Addr]bool{}}
	if a.pods, err = netip.ParsePrefix(pods); err != nil {
		return nil, fmt.Errorf("cannot read the addresses of pods: %w", err)
	}
	return a, nil
}

// take returns the pod's former address if it is free, or else the first free one.
func (a *addresses) take(before string) (netip.Addr, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if ip, err := netip.ParseAddr(before); err == nil && a.pods.Contains(ip) && !a.taken[ip] {
		a.taken[ip] = true
		return ip, nil
	}
	ip := a.pods.Addr()
	for range firstPod {
		ip = ip.Next()
	}
	for ; a.pods.Contains(ip.Next()); ip = ip.Next() { // the last address is the broadcast address
		if !a.taken[ip] {
			a.taken[ip] = true
			return ip, nil
		}
	}
	return ip, errors.New("all addresses of the node are taken")
}

func (a *addresses) release(ip netip.Addr) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.taken, ip)
}
