// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package nodes_test

import (
	"os"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mlbatch/mlbatch/test/sandbox"
	"github.com/mlbatch/mlbatch/tools/localcluster"
	"github.com/mlbatch/mlbatch/tools/localcluster/platform"
)

const clusterName = "nodes"

// site is a cluster with the platform as in production.
type site struct {
	sandbox.Story
	cluster *localcluster.Cluster
	admin   client.Client
}

func newSite(t *testing.T) *site {
	t.Helper()
	s := &site{Story: sandbox.Story{T: t}}
	s.cluster = sandbox.New(t, localcluster.Config{
		Name: clusterName, Mode: localcluster.Simulated, Port: 26701, SimulatedNodes: 2, PlatformNodes: 3,
	})
	s.Must(platform.Site{
		Cluster: s.cluster, Checkout: s.cluster.Config().Checkout, Progress: os.Stderr, EveryPart: true,
		Values: []string{"setup/profiles/production.yaml", "test/nodes/testdata/platform.yaml"},
	}.Up(t.Context()))
	s.admin = sandbox.Connect(t, s.cluster)
	return s
}
