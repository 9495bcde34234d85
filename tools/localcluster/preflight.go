// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/mlbatch/mlbatch/setup"
	"github.com/mlbatch/mlbatch/tools/localcluster/build"
)

// Space that a cold start needs: builds and the compiler's cache on one side,
// images and logs on the other.
const (
	cacheSpace = 12 << 30
	stateSpace = 3 << 30
)

// preflight refuses what cannot work, in a sentence, before anything is
// started. It returns the socket that the API server will answer on.
func (c *Cluster) preflight() (*net.TCPListener, error) {
	if c.host.system != "linux" {
		return nil, errors.New("a local cluster needs Linux; on other systems run it in a Linux virtual machine")
	}
	if c.host.user != 0 {
		return nil, errors.New("a local cluster needs root, for its private mounts, network and cgroups; run the command with sudo")
	}
	if err := c.checkDir(); err != nil {
		return nil, err
	}
	if err := c.checkSpace(c.config.StateDir, stateSpace); err != nil {
		return nil, err
	}
	if err := c.checkCache(); err != nil {
		return nil, err
	}
	return c.listen()
}

// checkCache asks for the space that builds need only if there are any to do:
// the first ones take most of it themselves.
func (c *Cluster) checkCache() error {
	cache, err := c.cache()
	if err != nil {
		return err
	}
	versions, err := setup.Load()
	if err != nil {
		return err
	}
	lacks, err := cache.Lacks(build.Node(versions)...)
	if err != nil {
		return err
	}
	need := uint64(0)
	if lacks {
		need = cacheSpace
	}
	return c.checkSpace(c.config.CacheDir, need)
}

// checkDir refuses folders that the node covers with file systems of its own,
// and paths too long for the sockets below them.
func (c *Cluster) checkDir() error {
	for _, covered := range []string{"/run/", "/var/lib/", "/var/log/", "/proc/", "/sys/"} {
		if strings.HasPrefix(c.Dir()+"/", covered) {
			return fmt.Errorf("the cluster's folder %s may not lie in %s; choose another with XDG_STATE_HOME", c.Dir(), covered)
		}
	}
	if longest := c.containerdSocket(); len(longest) > 100 {
		return fmt.Errorf("the path %s is too long for a socket; choose a shorter folder with XDG_STATE_HOME", longest)
	}
	return nil
}

func (c *Cluster) checkSpace(dir string, need uint64) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("cannot make the folder %s: %w", dir, err)
	}
	free, err := c.host.free(dir)
	if err != nil {
		return err
	}
	if free < need {
		return fmt.Errorf("%s has %.1f GiB free and a local cluster may need %.1f GiB; free some space or choose another disk with XDG_CACHE_HOME and XDG_STATE_HOME",
			dir, gib(free), gib(need))
	}
	return nil
}

func gib(bytes uint64) float64 { return float64(bytes) / (1 << 30) }

func (c *Cluster) listen() (*net.TCPListener, error) {
	address := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: c.config.Port}
	listener, err := net.ListenTCP("tcp4", address)
	if errors.Is(err, unix.EADDRINUSE) {
		return nil, fmt.Errorf("port %d on 127.0.0.1 is in use; choose another with --port", c.config.Port)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot listen on %s: %w", address, err)
	}
	return listener, nil
}
