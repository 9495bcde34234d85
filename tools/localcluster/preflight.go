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
	"strings"

	"golang.org/x/sys/unix"

	"github.com/mlbatch/mlbatch/tools/artifacts/components"
)

// Preflight refuses in a sentence what would make Up fail later: another user
// than root, or for a simulated cluster one who may not make namespaces, no go
// command, folders that cannot be used, a small disk, a kernel module that cannot
// be loaded, a port in use. It takes a moment and starts nothing: call it before
// long builds. Others are components that the caller builds beside the cluster's
// own, so that their disk space is asked for too. A cluster that runs has passed
// already; only flags that it was not started with are refused.
func (c *Cluster) Preflight(ctx context.Context, others ...components.Component) error {
	if c.Running() {
		return c.join()
	}
	listener, err := c.preflight(ctx, others...)
	if err != nil {
		return err
	}
	return listener.Close()
}

// preflight is Preflight of a cluster that does not run. It returns the socket
// that the API server will answer on.
func (c *Cluster) preflight(ctx context.Context, others ...components.Component) (*net.TCPListener, error) {
	checks := []func() error{c.checkMachine, c.checkFolders, func() error { return c.checkSpace(others) }}
	if c.config.Mode == Real {
		checks = append(checks, func() error { return c.loadBridgeFilter(ctx) })
	} else {
		checks = append(checks, c.checkNamespaces)
	}
	for _, check := range checks {
		if err := check(); err != nil {
			return nil, err
		}
	}
	return c.listen()
}

func (c *Cluster) checkMachine() error {
	if c.host.system != "linux" {
		return errors.New("a local cluster needs Linux; on other systems run it in a Linux virtual machine")
	}
	if c.host.user != 0 && c.config.Mode == Real {
		return errors.New("a local cluster that runs containers needs root, for its private mounts, network and cgroups; " +
			"run the command with sudo, or do with simulated nodes (localcluster up --mode=simulated)")
	}
	if _, err := exec.LookPath("go"); err != nil {
		return errors.New("the go command was not found, which builds a local cluster; " +
			`install Go or add its folder to PATH (sudo has a PATH of its own: sudo env "PATH=$PATH" …)`)
	}
	return nil
}

// checkFolders refuses folders that the node covers with file systems of its
// own, and paths too long for the sockets below them.
func (c *Cluster) checkFolders() error {
	covers := []string{"/run", "/proc", "/sys"}
	if c.config.Mode == Real {
		covers = append(covers, "/var/lib", "/var/log")
	}
	for _, folder := range []struct{ dir, variable string }{
		{c.config.StateDir, "XDG_STATE_HOME"}, {c.config.CacheDir, "XDG_CACHE_HOME"},
	} {
		for _, covered := range covers {
			if strings.HasPrefix(resolved(folder.dir)+"/", resolved(covered)+"/") {
				return fmt.Errorf("the folder %s may not lie in %s, which the cluster's node covers; choose another with %s", folder.dir, covered, folder.variable)
			}
		}
		if err := os.MkdirAll(folder.dir, 0o755); err != nil {
			return fmt.Errorf("cannot make the folder %s: %w", folder.dir, err)
		}
	}
	if longest := c.containerdSocket(); len(longest) > 100 {
		return fmt.Errorf("the path %s is too long for a socket; choose a shorter folder with XDG_STATE_HOME", longest)
	}
	return nil
}

// resolved follows the links in as much of a path as exists.
func resolved(path string) string {
	for at, rest := path, ""; ; at, rest = filepath.Dir(at), filepath.Join(filepath.Base(at), rest) {
		if real, err := filepath.EvalSymlinks(at); err == nil {
			return filepath.Join(real, rest)
		}
		if at == filepath.Dir(at) {
			return path
		}
	}
}

// loadBridgeFilter loads the module that lets kube-proxy see traffic between
// two pods. The kernel does so by itself only for iptables; in the cluster's
// namespaces it would be too late, with the builds done.
func (c *Cluster) loadBridgeFilter(ctx context.Context) error {
	loaded := filepath.Join(string(c.host.proc), "sys", "net", "bridge")
	if _, err := os.Stat(loaded); err == nil {
		return nil
	}
	out, err := exec.CommandContext(ctx, c.host.modprobe, "br_netfilter").CombinedOutput()
	if err == nil || ctx.Err() != nil {
		return ctx.Err()
	}
	why := strings.TrimSpace(string(out))
	if why == "" {
		why = err.Error()
	}
	return fmt.Errorf("cannot load the kernel module br_netfilter (%s); load it on the host of this machine and try again", strings.ReplaceAll(why, "\n", "; "))
}

func (c *Cluster) listen() (*net.TCPListener, error) {
	address := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: c.config.Port}
	listener, err := net.ListenTCP("tcp4", address)
	if errors.Is(err, unix.EADDRINUSE) {
		return nil, fmt.Errorf("port %d on 127.0.0.1 is in use; end the program that uses it, or choose another port (localcluster up --port, make demo DEMO_PORT=, make test E2E_PORT=)", c.config.Port)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot listen on %s: %w", address, err)
	}
	return listener, nil
}
