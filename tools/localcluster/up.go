// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"

	"github.com/mlbatch/mlbatch/setup"
	"github.com/mlbatch/mlbatch/tools/artifacts/components"
)

// Up builds what is missing, starts the cluster, and returns when nodes and DNS are ready.
// If the cluster is already running, Up keeps its port and number of nodes, resumes what
// an earlier Up left undone, and restarts programs that differ in this checkout. If a new
// cluster fails, nothing is left running; the logs stay until the next Up or Down.
func (c *Cluster) Up(ctx context.Context) error {
	unlock, err := c.lock()
	if err != nil {
		return err
	}
	defer unlock()
	if c.Running() {
		if err := c.useRunningConfig(); err != nil {
			return err
		}
		fmt.Fprintf(c.progress, "cluster %q is running\n", c.config.Name)
		return c.fullDisk(c.resume(ctx))
	}
	listener, err := c.preflight(ctx)
	if err != nil {
		return err
	}
	defer listener.Close()
	return c.fullDisk(c.begin(ctx, listener))
}

// begin starts a stopped cluster.
func (c *Cluster) begin(ctx context.Context, listener *net.TCPListener) error {
	// Build first: if it fails, the logs of an earlier cluster are still there.
	built, err := c.buildAll(ctx)
	if err != nil {
		return err
	}
	defer os.RemoveAll(built.dir)
	if err := c.prepare(built); err != nil {
		return err
	}
	return c.bringUp(ctx, listener)
}

// resume updates a running cluster to what a new one would be.
func (c *Cluster) resume(ctx context.Context) error {
	if err := c.awaitSettled(ctx); err != nil {
		return c.withLogs(err)
	}
	if err := c.update(ctx); err != nil {
		return err
	}
	return c.withLogs(c.complete(ctx))
}

// useRunningConfig replaces the configuration by that of the running cluster. It refuses
// explicit settings that differ.
func (c *Cluster) useRunningConfig() error {
	keeper, _ := c.host.proc.keeperOf(c.Dir())
	if asked := c.asked.Port; asked != 0 && asked != keeper.Port {
		return c.differs("port", asked, keeper.Port)
	}
	if asked := c.asked.SimulatedNodes; asked != 0 && max(0, asked) != keeper.SimulatedNodes {
		return c.differs("simulated-nodes", max(0, asked), keeper.SimulatedNodes)
	}
	if err := c.usePlatformNodes(cmp.Or(keeper.PlatformNodes, 1)); err != nil {
		return err
	}
	mode := cmp.Or(Mode(keeper.Mode), Real)
	if asked := c.asked.Mode; asked != "" && asked != mode {
		return c.differs("mode", asked, mode)
	}
	asked := c.config.Kubernetes
	c.config.Kubernetes = keeper.Kubernetes
	if c.asked.Kubernetes != "" && asked != keeper.Kubernetes {
		versions, err := c.Versions()
		return errors.Join(err, c.differs("kubernetes", c.asked.Kubernetes, setup.Minor(versions.LocalCluster.Kubernetes)))
	}
	c.config.Port, c.config.SimulatedNodes, c.config.Mode = keeper.Port, keeper.SimulatedNodes, mode
	return nil
}

// usePlatformNodes takes over the number of nodes for the platform.
func (c *Cluster) usePlatformNodes(runs int) error {
	if asked := c.asked.PlatformNodes; asked != 0 && asked != runs {
		return c.cannotChange(fmt.Sprintf("has nodes for the platform: %d, not %d", runs, asked))
	}
	c.config.PlatformNodes = runs
	return nil
}

func (c *Cluster) differs(flag string, asked, is any) error {
	return fmt.Errorf("cluster %q runs with --%s=%v, not %v; omit the flag, or remove the cluster first with: localcluster down --name=%s",
		c.config.Name, flag, is, asked, c.config.Name)
}

// bringUp starts a prepared cluster; on failure it leaves nothing running.
func (c *Cluster) bringUp(ctx context.Context, listener *net.TCPListener) error {
	if err := c.start(ctx, listener); err != nil {
		return errors.Join(c.withLogs(err), c.stop())
	}
	return nil
}

// withLogs adds the log folder to an error of a started cluster.
func (c *Cluster) withLogs(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w\nlogs are in %s", err, c.LogDir())
}

// start runs the keeper and waits until the cluster is ready.
func (c *Cluster) start(ctx context.Context, listener *net.TCPListener) error {
	if c.config.Mode == Real {
		if err := emptyCgroup(c.host.cgroups); err != nil {
			return err
		}
	}
	if err := c.startKeeper(listener); err != nil {
		return err
	}
	return c.complete(ctx)
}

// complete waits for a running keeper and sets up the rest. It may be repeated: the
// command that started the keeper may have been killed at any point.
func (c *Cluster) complete(ctx context.Context) error {
	if err := c.awaitKeeper(ctx); err != nil {
		return err
	}
	if err := c.writeKubeconfig(c.KubeconfigPath(), "admin", fmt.Sprintf("https://127.0.0.1:%d", c.config.Port)); err != nil {
		return err
	}
	if c.config.Mode == Real {
		if err := c.LoadImages(ctx, c.ownImages()); err != nil {
			return err
		}
	}
	return c.finish(ctx)
}

// built is what buildAll made for a cluster.
type built struct {
	// dir becomes the cluster's folder. It holds programs and images.
	dir   string
	bins  components.Binaries
	tools string
}

// Build builds what Up would build for a new cluster, and starts nothing. After that, Up needs no
// network, on this machine or on one to which the caches are copied.
func (c *Cluster) Build(ctx context.Context) error {
	built, err := c.buildAll(ctx)
	if err != nil {
		return err
	}
	return os.RemoveAll(built.dir)
}

// buildAll builds what is missing. It does not change the cluster.
func (c *Cluster) buildAll(ctx context.Context) (built, error) {
	cache, err := c.cache()
	if err != nil {
		return built{}, err
	}
	versions, err := c.Versions()
	if err != nil {
		return built{}, err
	}
	bins, err := cache.Get(ctx, c.progress, c.Components(versions)...)
	if err != nil {
		return built{}, err
	}
	var tools string
	if c.config.Mode == Real {
		if tools, err = c.hostTools(ctx); err != nil {
			return built{}, err
		}
	}
	dir := c.newDir()
	if err := os.RemoveAll(dir); err != nil {
		return built{}, fmt.Errorf("cannot create the cluster's folder: %w", err)
	}
	if err := c.buildOwn(ctx, cache, dir, bins); err != nil {
		return built{}, errors.Join(err, os.RemoveAll(dir))
	}
	return built{dir: dir, bins: bins, tools: tools}, nil
}

// newDir returns a folder next to the cluster's folder, to which it is renamed later. Its name
// is fixed, so that Down finds what a killed command left behind.
func (c *Cluster) newDir() string {
	return filepath.Join(c.config.StateDir, "."+c.config.Name+".new")
}

// prepare replaces the folder of an earlier cluster.
func (c *Cluster) prepare(b built) error {
	if err := c.removeRemains(); err != nil {
		return err
	}
	if err := os.Rename(b.dir, c.Dir()); err != nil {
		return fmt.Errorf("cannot create the cluster's folder: %w", err)
	}
	return c.writePlan(b.bins, b.tools)
}

// KubectlPath is the path of a kubectl of the cluster's version.
func (c *Cluster) KubectlPath() string { return filepath.Join(c.Dir(), "bin", "kubectl") }

// keeperProgram is the path of the keeper of the cluster in dir.
func keeperProgram(dir string) string { return filepath.Join(dir, "bin", "keeper") }
