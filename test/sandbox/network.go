// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"fmt"
	"net"
	"os"
	"runtime"

	"golang.org/x/sys/unix"

	"github.com/mlbatch/mlbatch/tools/localcluster"
	"github.com/mlbatch/mlbatch/tools/localcluster/plan"
)

// ListenIn listens in the network of a cluster.
func ListenIn(cluster *localcluster.Cluster, address string) (listener net.Listener, err error) {
	var keeper plan.Keeper
	if err := plan.Read(cluster.Dir(), plan.KeeperFile, &keeper); err != nil {
		return nil, err
	}
	err = InNetworkOf(keeper.PID, func() (err error) {
		listener, err = net.Listen("tcp", address)
		return err
	})
	return listener, err
}

// InNetworkOf calls do in the network namespace of a process, such as the keeper of a cluster. Sockets that do opens
// stay there.
func InNetworkOf(pid int, do func() error) error {
	result := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		network, err := os.Open(fmt.Sprintf("/proc/%d/ns/net", pid))
		if err == nil {
			defer network.Close()
			err = unix.Setns(int(network.Fd()), unix.CLONE_NEWNET)
		}
		if err == nil {
			err = do()
		}
		result <- err
	}()
	return <-result
}
