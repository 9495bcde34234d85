// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/mlbatch/mlbatch/setup"
	"github.com/mlbatch/mlbatch/tools/artifacts/components"
	"github.com/mlbatch/mlbatch/tools/localcluster/plan"
)

// Cluster is one local cluster, running or not.
type Cluster struct {
	host host
	// asked is the configuration before defaults were filled in.
	asked    Config
	config   Config
	progress io.Writer
}

// New describes a cluster; it changes nothing. Progress receives a line for each
// step that takes time.
func New(config Config, progress io.Writer) (*Cluster, error) {
	complete, err := config.completed()
	if err != nil {
		return nil, err
	}
	return &Cluster{host: thisHost(), asked: config, config: complete, progress: progress}, nil
}

// Versions are those of setup/versions.yaml, with the cluster's version of Kubernetes.
func (c *Cluster) Versions() (setup.Versions, error) { return c.config.versions() }

// Config is the cluster's configuration with all defaults filled in.
func (c *Cluster) Config() Config { return c.config }

// Dir is the folder that holds everything of the cluster.
func (c *Cluster) Dir() string { return filepath.Join(c.config.StateDir, c.config.Name) }

// KubeconfigPath is the path of the administrator's kubeconfig while the cluster runs.
func (c *Cluster) KubeconfigPath() string { return filepath.Join(c.Dir(), "kubeconfig") }

// LogDir holds one log for each program, and the API server's audit log.
func (c *Cluster) LogDir() string { return filepath.Join(c.Dir(), plan.LogDir) }

// PodLogDir is where the node keeps the logs of pods.
func (c *Cluster) PodLogDir() string { return filepath.Join(c.Dir(), "node", "log-pods") }

// Kubeconfig returns the administrator's kubeconfig of a running cluster.
func (c *Cluster) Kubeconfig() ([]byte, error) {
	if !c.Running() {
		return nil, c.notRunning()
	}
	data, err := os.ReadFile(c.KubeconfigPath())
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("cluster %q is still starting; wait until 'localcluster up' ends", c.config.Name)
	}
	return data, err
}

// Running reports whether the cluster's keeper is alive.
func (c *Cluster) Running() bool {
	_, alive := c.host.proc.keeperOf(c.Dir())
	return alive
}

func (c *Cluster) notRunning() error {
	return fmt.Errorf("cluster %q is not running; start it with: localcluster up --name=%s", c.config.Name, c.config.Name)
}

// cache is the build cache that the cluster takes its programs from.
func (c *Cluster) cache() (components.Cache, error) {
	checkout := c.config.Checkout
	if checkout == "" {
		checkout = "."
	}
	root, err := FindCheckout(checkout)
	if err != nil {
		return components.Cache{}, err
	}
	return components.CacheIn(c.config.CacheDir, root), nil
}

// cgroup is the name of the cluster's folder in each cgroup hierarchy.
func (c *Cluster) cgroup() string { return cgroupOf(c.Dir()) }

const cgroupPrefix = "mlbatch-"

// cgroupOf includes a hash of the state folder: clusters in two homes may share a name.
func cgroupOf(dir string) string {
	home := sha256.Sum256([]byte(resolved(filepath.Dir(dir))))
	return cgroupPrefix + filepath.Base(dir) + "-" + hex.EncodeToString(home[:4])
}
