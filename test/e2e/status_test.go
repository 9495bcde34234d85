// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package e2e_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/mlbatch/mlbatch/test/e2e/needs"
	"github.com/mlbatch/mlbatch/tools/localcluster"
	"github.com/mlbatch/mlbatch/tools/localcluster/platform"
)

// A developer runs the status command on a healthy cluster with the platform.
func TestTheStatusOfAClusterThatIsWell(t *testing.T) {
	requires(t, needs.Machine)
	err := await(t.Context(), func(ctx context.Context) (string, error) {
		return notWell(site.Cluster.Status(ctx, "kube-system", platform.Namespace)), nil
	})
	if err != nil {
		t.Error(err)
	}
}

// notWell says what is wrong in a status.
func notWell(status localcluster.Status) string {
	for _, c := range status.Components {
		if c.State != localcluster.Running || c.Version == "" || c.PID == 0 || c.MemoryBytes == 0 || c.Problem != "" {
			return fmt.Sprintf("a component is %+v", c)
		}
	}
	u := status.Use
	switch {
	case status.Problem != "":
		return status.Problem
	case len(status.Components) < 8 || len(status.Deployments) < 7: // CoreDNS, five operators, PodGroups' controller
		return fmt.Sprintf("there are %d components and these Deployments: %+v", len(status.Components), status.Deployments)
	case len(status.Nodes) != 2 || status.Nodes[0].Ready != 1 || status.Nodes[1].Ready != localcluster.DefaultSimulatedNodes:
		return fmt.Sprintf("nodes are %+v", status.Nodes)
	case u.Processes <= len(status.Components) || u.MemoryBytes < 1<<28 || u.DiskBytes < 1<<28:
		return fmt.Sprintf("it uses %+v", u)
	}
	return ""
}
