// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package nodes_test

import (
	"os"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workload "github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/test/sandbox"
	"github.com/mlbatch/mlbatch/tools/localcluster"
	"github.com/mlbatch/mlbatch/tools/localcluster/platform"
)

const (
	clusterName = "nodes"
	// limit bounds every wait. It is long because a machine that compiles may be slow.
	limit = 3 * time.Minute
)

// site is a cluster with the platform as in production.
type site struct {
	*testing.T
	cluster *localcluster.Cluster
	admin   client.Client
}

func newSite(t *testing.T) *site {
	t.Helper()
	s := &site{T: t}
	checkout, err := localcluster.FindCheckout(".")
	s.must(err)
	s.cluster, err = localcluster.New(localcluster.Config{
		Name: clusterName, Mode: localcluster.Simulated, Port: 26701, SimulatedNodes: 2, PlatformNodes: 3, Checkout: checkout,
	}, os.Stderr)
	s.must(err)
	s.must(s.cluster.Down()) // left by a killed run
	s.Cleanup(s.end)
	s.must(platform.Site{
		Cluster: s.cluster, Checkout: checkout, Progress: os.Stderr, EveryPart: true,
		Values: []string{"setup/profiles/production.yaml", "test/nodes/testdata/platform.yaml"},
	}.Up(t.Context()))
	config, err := s.cluster.RESTConfig()
	s.must(err)
	config.QPS, config.WarningHandler = -1, rest.NoWarnings{}
	s.must(workload.AddToScheme(scheme.Scheme))
	s.admin, err = client.New(config, client.Options{})
	s.must(err)
	return s
}

func (s *site) end() {
	if s.Failed() && os.Getenv("MLBATCH_E2E_KEEP") != "" {
		return
	}
	s.must(s.cluster.Down())
}

func (s *site) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

func (s *site) await(what string, holds func() error) {
	s.Helper()
	if err := sandbox.Within(s.Context(), limit, holds); err != nil {
		s.Fatalf("waiting until %s: %v", what, err)
	}
}
