// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestPreflightSaysWhatToDo(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(*testing.T, *Cluster)
		want  []string
	}{
		"another system": {
			func(_ *testing.T, c *Cluster) { c.host.system = "darwin" },
			[]string{"needs Linux"},
		},
		"another user than root": {
			func(_ *testing.T, c *Cluster) { c.host.user = 1000 },
			[]string{"needs root", "sudo"},
		},
		"no go command": {
			func(t *testing.T, _ *Cluster) { t.Setenv("PATH", t.TempDir()) },
			[]string{"cannot find the go command", "PATH"},
		},
		"a state folder that the node covers": {
			func(_ *testing.T, c *Cluster) { c.config.StateDir = "/var/lib/mlbatch" },
			[]string{"/var/lib/mlbatch must not be below /var/lib,", "XDG_STATE_HOME"},
		},
		"a cache folder that the node covers": {
			func(_ *testing.T, c *Cluster) { c.config.CacheDir = "/var/lib/jenkins/.cache" },
			[]string{"/var/lib/jenkins/.cache must not be below /var/lib,", "XDG_CACHE_HOME"},
		},
		"another spelling of a folder that the node covers": {
			func(_ *testing.T, c *Cluster) { c.config.StateDir = "/var/run/mlbatch" },
			[]string{"/var/run/mlbatch must not be below /run,", "XDG_STATE_HOME"},
		},
		"a path too long for a socket": {
			func(_ *testing.T, c *Cluster) {
				c.config.StateDir = filepath.Join(c.config.StateDir, strings.Repeat("x", 90))
			},
			[]string{"containerd.sock is too long for a socket", "XDG_STATE_HOME"},
		},
		"a folder that cannot be made": {
			func(_ *testing.T, c *Cluster) { c.config.StateDir = filepath.Join(os.DevNull, "x") },
			[]string{"cannot create the folder /dev/null/x", "XDG_STATE_HOME"},
		},
		"a container without privileges": {
			func(_ *testing.T, c *Cluster) {
				c.host.try = func(*syscall.SysProcAttr) error { return errors.New("mount: /proc: permission denied") }
			},
			[]string{"root may not create namespaces and mount in them here (mount: /proc: permission denied)", "--privileged"},
		},
		"a container without cgroups": {
			func(_ *testing.T, c *Cluster) { c.host.cgroups = "/none" },
			[]string{"cannot create cgroups in /none (no such file or directory)", "--privileged"},
		},
		"a container without a volume": {
			func(_ *testing.T, c *Cluster) {
				c.config.StateDir = "/tmp/mlbatch-unit/state/mlbatch/clusters"
				c.host.disk = func(string) (disk, error) { return disk{free: 1 << 50, overlay: true}, nil }
			},
			[]string{"/tmp/mlbatch-unit/state/mlbatch/clusters is on an overlay file system", "--volume mlbatch:/tmp/mlbatch-unit/state)", "XDG_STATE_HOME", "--mode=simulated"},
		},
		"a kernel without br_netfilter": {
			func(t *testing.T, c *Cluster) {
				c.host.proc = proc(t.TempDir())
				c.host.modprobe = filepath.Join(t.TempDir(), "modprobe")
				write(t, c.host.modprobe, "#!/bin/sh\necho FATAL: Module $1 not found. >&2; exit 1\n")
			},
			[]string{"cannot load the kernel module br_netfilter (FATAL: Module br_netfilter not found.)"},
		},
		"a machine without modprobe": {
			func(t *testing.T, c *Cluster) { c.host.proc, c.host.modprobe = proc(t.TempDir()), "/none/modprobe" },
			[]string{"cannot load the kernel module br_netfilter", "/none/modprobe"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			cluster, _ := newCluster(t)
			c.spoil(t, cluster)
			wantSentence(t, cluster.Preflight(t.Context()), c.want...)
		})
	}
}

func TestTheKernelModuleIsLoadedOnlyIfItIsMissing(t *testing.T) {
	c, _ := newCluster(t)
	c.host.proc = proc(t.TempDir())
	c.host.modprobe = filepath.Join(t.TempDir(), "modprobe")
	asked := filepath.Join(t.TempDir(), "asked")
	write(t, c.host.modprobe, "#!/bin/sh\necho $@ >> "+asked+"\nmkdir -p "+filepath.Join(string(c.host.proc), "sys/net/bridge")+"\n")
	for range 2 {
		if err := c.Preflight(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if said, err := os.ReadFile(asked); err != nil || string(said) != "br_netfilter\n" {
		t.Errorf("modprobe was called with %q (%v)", said, err)
	}
}

func TestPreflightReservesThePort(t *testing.T) {
	c, _ := newCluster(t)
	listener, err := c.preflight(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	second, _ := newCluster(t)
	second.config.Port = listener.Addr().(*net.TCPAddr).Port
	wantSentence(t, second.Preflight(t.Context()), fmt.Sprintf("port %d on 127.0.0.1 is in use", second.config.Port), "--port", "DEMO_PORT", "E2E_PORT")
	listener.Close()
	for range 2 { // Preflight frees the port again
		if err := second.Preflight(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

func TestPreflightOfARunningClusterChecksOnlyItsFlags(t *testing.T) {
	c, _ := newCluster(t)
	pretendRunning(t, c)
	c.config.Port, c.host.user = 1, 1000
	c.host.disk = func(string) (disk, error) { return disk{}, nil }
	if err := c.Preflight(t.Context()); err != nil {
		t.Error(err)
	}
}
