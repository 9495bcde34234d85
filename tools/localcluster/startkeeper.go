// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/mlbatch/mlbatch/tools/localcluster/plan"
)

// startKeeper starts the keeper, detached from this process.
func (c *Cluster) startKeeper(listener *net.TCPListener) error {
	socket, err := listener.File()
	if err != nil {
		return fmt.Errorf("cannot pass on the API server's socket: %w", err)
	}
	defer socket.Close()
	log, err := os.Create(filepath.Join(c.LogDir(), "keeper.log"))
	if err != nil {
		return fmt.Errorf("cannot open the keeper's log: %w", err)
	}
	defer log.Close()
	recorded, record, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("cannot start the cluster: %w", err)
	}
	defer recorded.Close()
	defer record.Close()
	cmd := exec.Command(keeperProgram(c.Dir()), c.Dir())
	cmd.Dir = c.Dir()
	cmd.Stdout, cmd.Stderr = log, log
	cmd.ExtraFiles = []*os.File{socket, recorded} // become plan.ListenerFD and plan.RecordedFD
	cmd.SysProcAttr = c.host.namespaces()
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("cannot start the cluster in private namespaces: %w", err)
	}
	// The keeper outlives us. If it exits earlier, it must not stay as a zombie.
	go func() { _ = cmd.Wait() }()
	keeper, err := c.host.proc.keeper(cmd.Process.Pid)
	if err != nil {
		return errors.New("the cluster's keeper exited at once")
	}
	keeper.Port, keeper.SimulatedNodes, keeper.Mode = c.config.Port, max(0, c.config.SimulatedNodes), string(c.config.Mode)
	keeper.Kubernetes, keeper.PlatformNodes = c.config.Kubernetes, c.config.PlatformNodes
	if err := plan.Write(c.Dir(), plan.KeeperFile, keeper); err != nil {
		return err
	}
	if _, err := record.Write([]byte{1}); err != nil {
		return fmt.Errorf("cannot start the cluster's keeper: %w", err)
	}
	return nil
}
