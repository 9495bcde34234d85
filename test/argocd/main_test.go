// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package argocd_test

import (
	"net/http/httptest"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mlbatch/mlbatch/test/sandbox"
	"github.com/mlbatch/mlbatch/tools/artifacts/components"
	"github.com/mlbatch/mlbatch/tools/localcluster"
)

// site is a cluster with Argo CD, on which nothing of the platform is installed yet.
type site struct {
	*testing.T
	checkout string
	cluster  *localcluster.Cluster
	admin    client.Client
	// charts is the registry of the charts.
	charts *httptest.Server
	// repository is the folder of the git repository.
	repository string
	programs   components.Binaries
	// environment is that of Argo CD's programs.
	environment []string
}

func newSite(t *testing.T) *site {
	t.Helper()
	s := &site{T: t, repository: t.TempDir()}
	var err error
	if s.checkout, err = localcluster.FindCheckout("."); err != nil {
		t.Fatal(err)
	}
	s.build()
	s.charts = sandbox.Charts(t, s.checkout, (*httptest.Server).StartTLS)
	s.admin, s.cluster = sandbox.Loaded(t, "argocd", 26681, 2)
	s.git("init", "--quiet", "--initial-branch=main")
	s.install()
	s.start()
	return s
}
