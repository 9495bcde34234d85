// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package e2e_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/e2e-framework/pkg/envconf"

	"github.com/mlbatch/mlbatch/test/e2e/needs"
	"github.com/mlbatch/mlbatch/tools/localcluster/platform"
	"github.com/mlbatch/mlbatch/tools/mlbatch/install"
	"github.com/mlbatch/mlbatch/tools/mlbatch/install/uninstall"
)

// ownRosters are releases of stories in addition to the release of the stories' teams, in the
// same namespace. Releases of examples exist on our own cluster only.
var ownRosters = []string{"mlbatch-e2e-newcomers", "mlbatch-e2e-beside", "mlbatch-e2e-changes", "mlbatch-e2e-departures", "mlbatch-e2e-undefended"}

// roster is a release of charts/teams that a story changes as an administrator would: with its
// values file.
type roster struct {
	t               *testing.T
	name, namespace string
	kubeconfig      string
}

// keep returns a roster without installing it. At the end of the test, after the stories have
// cleaned up, it uninstalls the release.
func keep(t *testing.T, cfg *envconf.Config, name, namespace string) *roster {
	t.Helper()
	r := &roster{t: t, name: name, namespace: namespace, kubeconfig: cfg.KubeconfigFile()}
	t.Cleanup(func() {
		if err := uninstall.Remove(context.Background(), platform.Release{Name: name, Namespace: namespace}, r.kubeconfig); err != nil {
			t.Error(err)
		}
	})
	return r
}

// example is a file of setup/teams, installed as its reader would do it. Its objects do not
// have our prefix, so that it is for our own cluster only.
func example(t *testing.T, cfg *envconf.Config, name string) (*roster, string) {
	t.Helper()
	requires(t, needs.SimulatedNodes, needs.Machine)
	return keep(t, cfg, "teams", platform.Namespace), filepath.Join("setup", "teams", name)
}

// apply does what helm upgrade --install does.
func (r *roster) apply(ctx context.Context, files ...string) {
	r.t.Helper()
	if err := r.try(ctx, files...); err != nil {
		r.t.Fatal(err)
	}
}

// refuses fails unless Helm refuses the files with this sentence.
func (r *roster) refuses(ctx context.Context, sentence string, files ...string) {
	r.t.Helper()
	if err := r.try(ctx, files...); err == nil || !strings.Contains(err.Error(), sentence) {
		r.t.Errorf("Helm's error is %v, want: %s", err, sentence)
	}
}

func (r *roster) try(ctx context.Context, files ...string) error {
	release, err := site.Teams(r.name, r.namespace, files[0])
	if err != nil {
		return err
	}
	release.Values = append(release.Values, files[1:]...)
	return install.Apply(ctx, release, r.kubeconfig)
}

// file returns a values file with that text.
func (r *roster) file(text string) string {
	r.t.Helper()
	path := filepath.Join(r.t.TempDir(), "teams.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		r.t.Fatal(err)
	}
	return path
}

// onSimulatedNodes is the first part of a file for a release that uses another release's
// flavor.
const onSimulatedNodes = `
cohort: ""
controller: {serviceAccount: {namespace: mlbatch-system}}
flavors: [{name: e2e-simulated, create: false, capacity: {nvidia.com/gpu: 48}}]
teams:
`
