// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"cmp"
	"fmt"
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

// processNodeProgram is the path of processnode in the cluster in dir.
func processNodeProgram(dir string) string { return filepath.Join(dir, "bin", "processnode") }

// processNode replaces the kubelet, with the same rights in the API server.
func (c *Cluster) processNode() plan.Program {
	return plan.Program{
		Name: "processnode", Path: processNodeProgram(c.Dir()),
		Args: []string{
			"--kubeconfig=" + c.kubeconfigOf("kubelet"), "--name=" + c.config.Name, "--dir=" + c.Dir(),
			"--bridge=" + bridgeName, "--address=" + nodeCIDR,
			"--label=" + realNodeLabel, "--taint=" + platformTaint,
		},
		// The next processnode would not know the processes of a killed one.
		PIDNamespace: true,
		Ready:        plan.Probe{URL: "http://127.0.0.1:10248/healthz"},
	}
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
