// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/mlbatch/mlbatch/setup"
	"github.com/mlbatch/mlbatch/tools/localcluster/build"
	"github.com/mlbatch/mlbatch/tools/localcluster/plan"
)

// Up builds what is missing, starts the cluster and returns when its nodes are
// ready and names resolve. If the cluster runs already it only checks that. On
// failure nothing is left running; the logs stay until the next Up or Down.
func (c *Cluster) Up(ctx context.Context) error {
	unlock, err := c.lock()
	if err != nil {
		return err
	}
	defer unlock()
	if c.Running() {
		fmt.Fprintf(c.progress, "cluster %q is running\n", c.config.Name)
		return c.finish(ctx)
	}
	listener, err := c.preflight()
	if err != nil {
		return err
	}
	defer listener.Close()
	if err := c.start(ctx, listener); err != nil {
		return errors.Join(err, c.stop())
	}
	return nil
}

func (c *Cluster) start(ctx context.Context, listener *net.TCPListener) error {
	if err := c.removeRemains(); err != nil {
		return err
	}
	own, err := c.prepare(ctx)
	if err != nil {
		return err
	}
	if err := c.startKeeper(own.keeper, listener); err != nil {
		return err
	}
	if err := c.awaitKeeper(ctx); err != nil {
		return err
	}
	if err := c.writeKubeconfig(c.KubeconfigPath(), "admin", fmt.Sprintf("https://127.0.0.1:%d", c.config.Port)); err != nil {
		return err
	}
	if err := c.LoadImages(ctx, own.archive); err != nil {
		return err
	}
	return c.finish(ctx)
}

// ownPrograms are what a cluster runs of this repository itself.
type ownPrograms struct {
	keeper  string
	archive string // images of the pause container, CoreDNS and the test workload
}

// prepare builds everything and fills the cluster's folder.
func (c *Cluster) prepare(ctx context.Context) (ownPrograms, error) {
	cache, err := c.cache()
	if err != nil {
		return ownPrograms{}, err
	}
	versions, err := setup.Load()
	if err != nil {
		return ownPrograms{}, err
	}
	bins, err := cache.Get(ctx, c.progress, build.Node(versions)...)
	if err != nil {
		return ownPrograms{}, err
	}
	tools, err := c.hostTools(ctx)
	if err != nil {
		return ownPrograms{}, err
	}
	dir := filepath.Join(c.Dir(), "bin")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return ownPrograms{}, fmt.Errorf("cannot make the cluster's folder: %w", err)
	}
	if err := os.Symlink(bins["ctr"], filepath.Join(dir, "ctr")); err != nil {
		return ownPrograms{}, fmt.Errorf("cannot fill the cluster's folder: %w", err)
	}
	if err := os.Symlink(bins["kubectl"], c.KubectlPath()); err != nil {
		return ownPrograms{}, fmt.Errorf("cannot fill the cluster's folder: %w", err)
	}
	own, err := c.buildOwn(ctx, cache, dir, bins["coredns"])
	if err != nil {
		return ownPrograms{}, err
	}
	return own, c.writePlan(bins, tools)
}

// KubectlPath is where a kubectl of the cluster's version is.
func (c *Cluster) KubectlPath() string { return filepath.Join(c.Dir(), "bin", "kubectl") }

// startKeeper starts process 1 of the cluster, detached from this process.
func (c *Cluster) startKeeper(keeper string, listener *net.TCPListener) error {
	socket, err := listener.File()
	if err != nil {
		return fmt.Errorf("cannot hand over the API server's socket: %w", err)
	}
	defer socket.Close()
	log, err := os.Create(filepath.Join(c.LogDir(), "keeper.log"))
	if err != nil {
		return fmt.Errorf("cannot open the keeper's log: %w", err)
	}
	defer log.Close()
	cmd := exec.Command(keeper, c.Dir())
	cmd.Dir = c.Dir()
	cmd.Stdout, cmd.Stderr = log, log
	cmd.ExtraFiles = []*os.File{socket} // becomes plan.ListenerFD
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Setsid:     true,
		Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWNET | syscall.CLONE_NEWPID | syscall.CLONE_NEWUTS | syscall.CLONE_NEWIPC,
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("cannot start the cluster in private namespaces (this needs root and CAP_SYS_ADMIN): %w", err)
	}
	// The keeper outlives us; until then its end must not leave a zombie.
	go func() { _ = cmd.Wait() }()
	start, err := startTime(cmd.Process.Pid)
	if err != nil {
		return fmt.Errorf("the cluster's keeper ended at once; see %s", log.Name())
	}
	return plan.Write(c.Dir(), plan.KeeperFile, plan.Keeper{PID: cmd.Process.Pid, StartTime: start})
}

// awaitKeeper follows the keeper's report until all programs are ready.
func (c *Cluster) awaitKeeper(ctx context.Context) error {
	var said string
	for {
		var status plan.Status
		err := plan.Read(c.Dir(), plan.StatusFile, &status)
		switch {
		case err == nil && status.Error != "":
			return errors.New(status.Error)
		case err == nil && status.Ready:
			return nil
		case !c.Running():
			return fmt.Errorf("the cluster's keeper ended; see %s", filepath.Join(c.LogDir(), "keeper.log"))
		case status.Waiting != said:
			said = status.Waiting
			fmt.Fprintf(c.progress, "starting %s\n", said)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
}
