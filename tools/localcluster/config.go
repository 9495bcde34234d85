// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"

	"github.com/mlbatch/mlbatch/setup"
	"github.com/mlbatch/mlbatch/tools/artifacts/filecache"
)

// Defaults of Config.
const (
	DefaultName = "mlbatch"
	// DefaultPort is below those that the kernel gives to connections (32768 to 60999), which may be in use
	// for as long as another program likes.
	DefaultPort           = 26443
	DefaultSimulatedNodes = 10
	// gpusPerNode is the nvidia.com/gpu capacity of each simulated node.
	gpusPerNode = 8
)

// Labels that tell the node that runs pods from the simulated ones.
const (
	realNodeLabel      = "localcluster.mlbatch.dev/real"
	simulatedNodeLabel = "localcluster.mlbatch.dev/simulated"
)

// Mode is the type of a cluster's first node.
type Mode string

const (
	// Real is a kubelet that runs containers. It needs root. Only pods that request GPUs are
	// scheduled to simulated nodes.
	Real Mode = "real"
	// Simulated is a program that runs only the platform's pods, as processes. All
	// other pods are scheduled to simulated nodes. Any user may run it.
	Simulated Mode = "simulated"
)

// Config describes a cluster. New fills in defaults for zero fields.
type Config struct {
	// Name tells clusters on one machine apart; it is also the real node's name.
	Name string
	// Mode is Real by default.
	Mode Mode
	// Port of the API server on the host's 127.0.0.1.
	Port int
	// Kubernetes is the minor version of Kubernetes, such as 1.30. The default is the environment variable
	// MLBATCH_KUBERNETES, or else the version of setup/versions.yaml.
	Kubernetes string
	// SimulatedNodes is the number of KWOK nodes, named gpu-0, gpu-1, …; a negative
	// number means none. A simulated cluster was tested with a thousand.
	SimulatedNodes int
	// PlatformNodes is the number of nodes of a simulated cluster that run the platform: 1 by default, at most 4.
	// With several, the cluster finds out about a lost node as soon as a real one does, which a thousand simulated
	// nodes would not bear.
	PlatformNodes int
	// Checkout is the root of this repository.
	Checkout string
	// CacheDir holds finished builds; StateDir holds one folder for each cluster.
	CacheDir string
	StateDir string
}

// validName matches names that are valid for a node and a cgroup, and short enough for a socket
// path.
var validName = regexp.MustCompile(`^[a-z]([a-z0-9-]{0,18}[a-z0-9])?$`)

// simulatedName matches the names of simulated nodes.
var simulatedName = regexp.MustCompile(`^gpu-[0-9]+$`)

// completed fills in defaults. The default folders are the user's cache and state folders.
func (c Config) completed() (Config, error) {
	if c.Name == "" {
		c.Name = DefaultName
	}
	if c.Port == 0 {
		c.Port = DefaultPort
	}
	if c.SimulatedNodes == 0 {
		c.SimulatedNodes = DefaultSimulatedNodes
	}
	c.Mode, c.PlatformNodes = cmp.Or(c.Mode, Real), cmp.Or(c.PlatformNodes, 1)
	c.Kubernetes = cmp.Or(c.Kubernetes, os.Getenv("MLBATCH_KUBERNETES"))
	versions, err := c.versions()
	if err := errors.Join(err, c.check()); err != nil {
		return c, err
	}
	c.Kubernetes = versions.LocalCluster.Minor
	if c.StateDir == "" {
		dir, err := defaultStateDir()
		if err != nil {
			return c, err
		}
		c.StateDir = dir
	}
	if c.CacheDir == "" {
		dir, err := filecache.UserDir()
		if err != nil {
			return c, err
		}
		c.CacheDir = dir
	}
	return c, nil
}

// versions are those of setup/versions.yaml, with the chosen version of Kubernetes.
func (c Config) versions() (setup.Versions, error) {
	versions, err := setup.Load()
	if err != nil {
		return setup.Versions{}, err
	}
	return versions.On(c.Kubernetes)
}

// check returns an error for an invalid name or mode.
func (c Config) check() error {
	if !validName.MatchString(c.Name) {
		return fmt.Errorf("cluster name %q must be up to 20 lower-case letters, digits and dashes, starting with a letter", c.Name)
	}
	if simulatedName.MatchString(c.Name) {
		return fmt.Errorf("cluster name %q is reserved for a simulated node; choose another with --name", c.Name)
	}
	if c.Mode != Real && c.Mode != Simulated {
		return fmt.Errorf("unknown mode %q; choose %s or %s", c.Mode, Real, Simulated)
	}
	if most := c.mostPlatformNodes(); c.PlatformNodes < 1 || c.PlatformNodes > most {
		return fmt.Errorf("a %s cluster cannot have %d nodes for the platform, but at most %d", c.Mode, c.PlatformNodes, most)
	}
	return nil
}

func defaultStateDir() (string, error) {
	if dir := os.Getenv("XDG_STATE_HOME"); dir != "" {
		if !filepath.IsAbs(dir) { // it would depend on the working directory
			return "", fmt.Errorf("XDG_STATE_HOME is %q; set it to an absolute path", dir)
		}
		return filepath.Join(dir, "mlbatch", "clusters"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("cannot find a folder for the cluster's state (set HOME or XDG_STATE_HOME): %w", err)
	}
	return filepath.Join(home, ".local", "state", "mlbatch", "clusters"), nil
}

// FindCheckout looks for the root of this repository from dir upwards.
func FindCheckout(dir string) (string, error) {
	root, err := setup.Checkout(dir)
	if errors.Is(err, setup.ErrNoCheckout) {
		return "", fmt.Errorf("a local cluster is built from a checkout of MLBatch, and %w: "+
			"run the command in the checkout, or give its path with --checkout", err)
	}
	return root, err
}
