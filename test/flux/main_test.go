// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package flux_test

import (
	"io"
	"log"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"
	helmregistry "helm.sh/helm/v3/pkg/registry"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mlbatch/mlbatch/tools/artifacts/charts/packaging"
	"github.com/mlbatch/mlbatch/tools/localcluster"
	"github.com/mlbatch/mlbatch/tools/localcluster/platform"
)

// site is a cluster with Flux, on which nothing of the platform is installed yet.
type site struct {
	*testing.T
	checkout string
	cluster  *localcluster.Cluster
	admin    client.Client
	// registry is the host and port of the registry that has the charts.
	registry string
}

func newSite(t *testing.T) *site {
	t.Helper()
	s := &site{T: t}
	var err error
	if s.checkout, err = localcluster.FindCheckout("."); err != nil {
		t.Fatal(err)
	}
	s.publish()
	s.start()
	s.startFlux()
	return s
}

// publish pushes the charts of this checkout to a registry.
func (s *site) publish() {
	s.Helper()
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	s.Cleanup(server.Close)
	s.registry = strings.TrimPrefix(server.URL, "http://")
	bundle, err := packaging.Build(s.Context(), s.checkout)
	if err != nil {
		s.Fatal(err)
	}
	c, err := helmregistry.NewClient(helmregistry.ClientOptPlainHTTP(), helmregistry.ClientOptWriter(io.Discard))
	if err != nil {
		s.Fatal(err)
	}
	for _, name := range []string{"mlbatch", "teams"} {
		chart, err := bundle.Chart(name)
		if err != nil {
			s.Fatal(err)
		}
		archive, err := chart.Archive()
		if err != nil {
			s.Fatal(err)
		}
		if _, err := c.Push(archive, s.registry+"/charts/"+name+":"+chart.Version); err != nil {
			s.Fatal(err)
		}
	}
}

// start starts the cluster with the programs of the platform.
func (s *site) start() {
	s.Helper()
	var err error
	s.cluster, err = localcluster.New(localcluster.Config{
		Name: "flux", Mode: localcluster.Simulated, Port: 26601, SimulatedNodes: 2, Checkout: s.checkout,
	}, os.Stderr)
	if err != nil {
		s.Fatal(err)
	}
	if err := s.cluster.Down(); err != nil { // left by a killed run
		s.Fatal(err)
	}
	s.Cleanup(s.end)
	programs := platform.Site{Cluster: s.cluster, Checkout: s.checkout, Progress: os.Stderr}
	if _, err := programs.Build(s.Context()); err != nil {
		s.Fatal(err)
	}
	if err := s.cluster.Up(s.Context()); err != nil {
		s.Fatal(err)
	}
	if err := programs.LoadImages(s.Context()); err != nil {
		s.Fatal(err)
	}
	config, err := s.cluster.RESTConfig()
	if err != nil {
		s.Fatal(err)
	}
	config.QPS, config.WarningHandler = -1, rest.NoWarnings{}
	if s.admin, err = client.New(config, client.Options{}); err != nil {
		s.Fatal(err)
	}
}

func (s *site) end() {
	if s.Failed() && os.Getenv("MLBATCH_E2E_KEEP") != "" {
		return
	}
	if err := s.cluster.Down(); err != nil {
		s.Error(err)
	}
}
