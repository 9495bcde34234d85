// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"context"
	"io"
	"log"
	"net/http/httptest"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"
	helmregistry "helm.sh/helm/v3/pkg/registry"

	"github.com/mlbatch/mlbatch/tools/artifacts/charts/packaging"
)

// Charts starts a registry that has the charts of a checkout in its folder charts, until the test
// ends. It speaks HTTP or HTTPS.
func Charts(t *testing.T, checkout string, start func(*httptest.Server)) (server *httptest.Server) {
	t.Helper()
	quiet := log.New(io.Discard, "", 0)
	server = httptest.NewUnstartedServer(registry.New(registry.Logger(quiet)))
	server.Config.ErrorLog = quiet
	start(server)
	t.Cleanup(server.Close)
	if err := push(t.Context(), checkout, server); err != nil {
		t.Fatal(err)
	}
	return server
}

func push(ctx context.Context, checkout string, to *httptest.Server) error {
	options := []helmregistry.ClientOption{helmregistry.ClientOptWriter(io.Discard), helmregistry.ClientOptHTTPClient(to.Client())}
	if to.TLS == nil {
		options = append(options, helmregistry.ClientOptPlainHTTP())
	}
	c, err := helmregistry.NewClient(options...)
	if err != nil {
		return err
	}
	bundle, err := packaging.Build(ctx, checkout)
	if err != nil {
		return err
	}
	for _, name := range []string{"mlbatch", "teams"} {
		chart, err := bundle.Chart(name)
		if err != nil {
			return err
		}
		archive, err := chart.Archive()
		if err != nil {
			return err
		}
		if _, err := c.Push(archive, to.Listener.Addr().String()+"/charts/"+name+":"+chart.Version); err != nil {
			return err
		}
	}
	return nil
}
