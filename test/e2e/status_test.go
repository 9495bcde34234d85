// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package e2e_test

import (
	"testing"

	"github.com/mlbatch/mlbatch/test/e2e/needs"
	"github.com/mlbatch/mlbatch/tools/localcluster"
	"github.com/mlbatch/mlbatch/tools/localcluster/platform"
)

// A developer runs the status command on a healthy cluster with the platform.
func TestTheStatusOfAClusterThatIsWell(t *testing.T) {
	requires(t, needs.Machine)
	status := site.Cluster.Status(t.Context(), "kube-system", platform.Namespace)
	if status.Problem != "" {
		t.Error(status.Problem)
	}
	for _, c := range status.Components {
		if c.State != localcluster.Running || c.Version == "" || c.PID == 0 || c.MemoryBytes == 0 || c.Problem != "" {
			t.Errorf("a component is %+v", c)
		}
	}
	if len(status.Components) < 8 || len(status.Deployments) < 7 { // CoreDNS, five operators, PodGroups' controller
		t.Errorf("there are %d components and these Deployments: %+v", len(status.Components), status.Deployments)
	}
	if len(status.Nodes) != 2 || status.Nodes[0].Ready != 1 || status.Nodes[1].Ready != localcluster.DefaultSimulatedNodes {
		t.Errorf("nodes are %+v", status.Nodes)
	}
	if u := status.Use; u.Processes <= len(status.Components) || u.MemoryBytes < 1<<28 || u.DiskBytes < 1<<28 {
		t.Errorf("it uses %+v", u)
	}
}
