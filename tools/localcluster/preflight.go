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

// Preflight returns an error if Up would fail later: missing rights, no go command,
// unusable folders, a small disk, a kernel module that cannot be loaded, or a port in use.
// It takes a moment and starts nothing: call it before long builds. Others are components
// that the caller builds as well; they count for the disk space. For a running cluster,
// it only refuses flags that differ from those it was started with.
func (c *Cluster) Preflight(ctx context.Context, others ...components.Component) error {
	if c.Running() {
		return c.useRunningConfig()
	}
	listener, err := c.preflight(ctx, others...)
	if err != nil {
		return err
	}
	return listener.Close()
}

// preflight is Preflight for a stopped cluster. It returns the socket that the API server
// will serve on.
func (c *Cluster) preflight(ctx context.Context, others ...components.Component) (*net.TCPListener, error) {
	checks := []func() error{c.checkMachine, c.checkFolders, func() error { return c.checkSpace(others) }, c.checkNamespaces}
	if c.config.Mode == Real {
		checks = append(checks, c.checkCgroups, c.checkLayers, func() error { return c.loadBridgeFilter(ctx) })
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
			"run the command with sudo, or use simulated nodes only (localcluster up --mode=simulated)")
	}
	if _, err := exec.LookPath("go"); err != nil {
		return errors.New("cannot find the go command, which builds a local cluster; " +
			`install Go or add its folder to PATH (sudo resets PATH; use sudo env "PATH=$PATH" …)`)
	}
	return nil
}

// checkFolders refuses folders that the node covers with its own file systems, and paths
// that are too long for a socket.
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
				return fmt.Errorf("the folder %s must not be below %s, which the cluster's node covers with its own mount; choose another with %s", folder.dir, covered, folder.variable)
			}
		}
		if err := os.MkdirAll(folder.dir, 0o755); err != nil {
			return fmt.Errorf("cannot create the folder %s (%w); choose another with %s", folder.dir, err, folder.variable)
		}
	}
	if longest := c.containerdSocket(); len(longest) > 100 {
		return fmt.Errorf("the path %s is too long for a socket; choose a shorter folder with XDG_STATE_HOME", longest)
	}
	return nil
}

// resolved follows symbolic links in the part of a path that exists.
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

// loadBridgeFilter loads the module that lets kube-proxy see traffic between two pods. The
// kernel loads it automatically only for iptables. Later, in the cluster's namespaces, an
// error would cost the user the builds.
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
	return fmt.Errorf("cannot load the kernel module br_netfilter (%s); load it on the host and try again", strings.ReplaceAll(why, "\n", "; "))
}

func (c *Cluster) listen() (*net.TCPListener, error) {
	address := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: c.config.Port}
	listener, err := net.ListenTCP("tcp4", address)
	if errors.Is(err, unix.EADDRINUSE) {
		return nil, fmt.Errorf("port %d on 127.0.0.1 is in use; stop the program that uses it, or choose another port (localcluster up --port, make demo DEMO_PORT=, make test E2E_PORT=)", c.config.Port)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot listen on %s: %w", address, err)
	}
	return listener, nil
}
