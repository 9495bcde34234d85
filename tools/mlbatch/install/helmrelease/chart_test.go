// SPDX-License-Identifier: Apache-2.0

package helmrelease

import (
	"bytes"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"
	helmregistry "helm.sh/helm/v3/pkg/registry"

	"github.com/mlbatch/mlbatch/test/wording"
)

func TestAChartIsFoundWhereItIs(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"mlbatch-0.1.0.tgz", "mlbatch-docs-0.1.0.tgz", "teams-0.0.9.tgz", "two-1.tgz", "two-2.tgz"} {
		write(t, filepath.Join(dir, name), "")
	}
	for name, c := range map[string]struct{ from, chart, want string }{
		"of this version":                {dir, "mlbatch", filepath.Join(dir, "mlbatch-0.1.0.tgz")},
		"of the only version there is":   {dir, "teams", filepath.Join(dir, "teams-0.0.9.tgz")},
		"in a registry":                  {"oci://registry.example.com/charts/", "teams", "oci://registry.example.com/charts/teams:0.1.0"},
		"nowhere":                        {dir, "kueue", ""},
		"twice, and neither is this one": {dir, "two", ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := FindChart(c.from, c.chart, "0.1.0")
			if got != c.want || (err == nil) != (c.want != "") {
				t.Errorf("got %q, %v", got, err)
			}
			if err != nil {
				wording.Wanted(t, err, "cannot find the packaged chart "+c.chart+" in "+dir, "make release REGISTRY=REGISTRY", "--charts")
			}
		})
	}
}

func TestAChartIsPulledFromARegistry(t *testing.T) {
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	all, err := bundle()
	if err != nil {
		t.Fatal(err)
	}
	teams, err := all.Chart("teams")
	if err != nil {
		t.Fatal(err)
	}
	archive, err := teams.Archive()
	if err != nil {
		t.Fatal(err)
	}
	host := strings.TrimPrefix(server.URL, "http://")
	c, err := helmregistry.NewClient(helmregistry.ClientOptPlainHTTP(), helmregistry.ClientOptWriter(io.Discard))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Push(archive, host+"/charts/teams:0.1.0"); err != nil {
		t.Fatal(err)
	}
	release := Release{Name: "teams", Chart: "oci://" + host + "/charts/teams:0.1.0", PlainHTTP: true}
	if got, err := release.Fetch(); err != nil || !bytes.Equal(got, archive) {
		t.Errorf("%d bytes are pulled of %d (%v)", len(got), len(archive), err)
	}
	release.Chart = "oci://" + host + "/charts/teams:0.2.0"
	_, err = release.Fetch()
	wording.Wanted(t, err, "cannot pull the chart "+release.Chart)
}

func TestAFileThatIsNoChartIsNamed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "mlbatch.tgz")
	if err := os.WriteFile(path, []byte("not a chart"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := Release{Name: "mlbatch", Chart: path}.Template(t.Context())
	wording.Wanted(t, err, "cannot load the chart "+path)
}
