// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package flux_test

import (
	"net/http/httptest"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mlbatch/mlbatch/test/sandbox"
	"github.com/mlbatch/mlbatch/tools/localcluster"
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
	s.registry = sandbox.Charts(t, s.checkout, (*httptest.Server).Start).Listener.Addr().String()
	s.admin, s.cluster = sandbox.Loaded(t, "flux", 26601, 2)
	s.startFlux()
	return s
}
