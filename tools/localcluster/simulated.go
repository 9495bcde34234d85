// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"

	"github.com/mlbatch/mlbatch/setup"
	"github.com/mlbatch/mlbatch/tools/artifacts/components"
	"github.com/mlbatch/mlbatch/tools/localcluster/plan"
)

// Mode returns the mode of the running cluster, or else the configured one.
func (c *Cluster) Mode() Mode {
	if keeper, alive := c.host.proc.keeperOf(c.Dir()); alive {
		return cmp.Or(Mode(keeper.Mode), Real)
	}
	return c.config.Mode
}

// Components returns the components that the cluster needs in its mode.
func (c *Cluster) Components(v setup.Versions) []components.Component {
	if c.Mode() == Simulated {
		return components.ControlPlane(v)
	}
	return components.Node(v)
}

// platformTaint keeps all pods but the platform's away from the process node.
// setup/profiles/localcluster.yaml tolerates it.
const platformTaint = "localcluster.mlbatch.dev/platform"

// mostPlatformNodes is how many nodes the pods' addresses are enough for.
func (c Config) mostPlatformNodes() int {
	if c.Mode == Simulated {
		return 4
	}
	return 1
}

// numbered returns what belongs to a node for the platform. The first one has the plain name.
func numbered(name string, node int) string {
	if node == 1 {
		return name
	}
	return fmt.Sprintf("%s-%d", name, node)
}

// processNodeProgram is the path of processnode in the cluster in dir.
func processNodeProgram(dir string) string { return filepath.Join(dir, "bin", "processnode") }

// linkProcessNodes gives each process node a path of its own, by which its process is known.
func (c *Cluster) linkProcessNodes(bin string) error {
	for node := 2; node <= c.config.PlatformNodes; node++ {
		if err := os.Symlink("processnode", filepath.Join(bin, numbered("processnode", node))); err != nil {
			return fmt.Errorf("cannot fill the cluster's folder: %w", err)
		}
	}
	return nil
}

func (c *Cluster) processNodes() (all []plan.Program) {
	for node := 1; node <= c.config.PlatformNodes; node++ {
		all = append(all, c.processNode(node))
	}
	return all
}

// processNode replaces the kubelet, with the same rights in the API server.
func (c *Cluster) processNode(node int) plan.Program {
	health := fmt.Sprintf("127.0.0.1:%d", 10248+100*(node-1))
	return plan.Program{
		Name: numbered("processnode", node), Path: numbered(processNodeProgram(c.Dir()), node),
		Args: []string{
			"--kubeconfig=" + c.kubeconfigOf(numbered("kubelet", node)), "--name=" + numbered(c.config.Name, node), "--dir=" + c.Dir(),
			"--bridge=" + bridgeName, "--address=" + nodeCIDR, "--pods=" + c.podsOf(node), "--health=" + health,
			"--label=" + realNodeLabel, "--taint=" + platformTaint,
		},
		// The next processnode would not know the processes of a killed one.
		PIDNamespace: true,
		Ready:        plan.Probe{URL: "http://" + health + "/healthz"},
	}
}

// podsOf returns the addresses of the pods of a node. All nodes are on one bridge.
func (c *Cluster) podsOf(node int) string {
	if c.config.PlatformNodes == 1 {
		return podCIDR
	}
	return fmt.Sprintf("10.200.0.%d/26", 64*(node-1))
}

// losesNodesSlowly reports whether the node controller and heartbeats are slowed down for a thousand nodes.
func (c *Cluster) losesNodesSlowly() bool {
	return c.config.Mode == Simulated && c.config.PlatformNodes == 1
}

// RunInstead tells a running simulated cluster which program to run instead of each
// image. It applies to containers that start later.
func (c *Cluster) RunInstead(images map[string]plan.Image) error {
	if !c.Running() {
		return c.notRunning()
	}
	if c.Mode() != Simulated {
		return fmt.Errorf("cluster %q runs containers; load images into it", c.config.Name)
	}
	return plan.Write(c.Dir(), plan.ImagesFile, images)
}
