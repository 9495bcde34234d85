// SPDX-License-Identifier: Apache-2.0

package platform

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"

	"github.com/mlbatch/mlbatch/setup"
	"github.com/mlbatch/mlbatch/test/wording"
	"github.com/mlbatch/mlbatch/tools/mlbatch/install"
)

// newSite returns a site with a checkout that has the packaged generator, as after 'make
// charts', and the settings file job.yaml.
func newSite(t *testing.T, settings string) Site {
	t.Helper()
	site := Site{Checkout: t.TempDir()}
	versions, err := setup.Load()
	if err != nil {
		t.Fatal(err)
	}
	generator, err := loader.LoadDir("../../pytorchjob-generator/chart")
	if err != nil {
		t.Fatal(err)
	}
	generator.Metadata.Version = versions.Version
	if _, err := chartutil.Save(generator, filepath.Join(site.Checkout, "dist")); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(site.Checkout, "job.yaml"), settings)
	return site
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

const good = "jobName: digits\ncontainerImage: example.org/image:1\nnumPods: 2\n"

func TestASettingsFileBecomesAJob(t *testing.T) {
	job, err := newSite(t, good).Template(t.Context(), "pytorchjob-generator", "job.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"kind: AppWrapper", `name: "digits"`, "example.org/image:1"} {
		if !strings.Contains(job, want) {
			t.Errorf("the job lacks %q:\n%s", want, job)
		}
	}
}

func TestABadSettingsFileIsExplained(t *testing.T) {
	for name, c := range map[string]struct {
		settings string
		want     []string
	}{
		"a misspelt value":          {good + "numPodz: 3\n", []string{"cannot render the chart pytorchjob-generator", "numPodz"}},
		"a value that is missing":   {"jobName: digits\n", []string{"cannot render the chart pytorchjob-generator", "containerImage"}},
		"a value of the wrong kind": {good + "numGpusPerPod: many\n", []string{"cannot render the chart pytorchjob-generator", "numGpusPerPod"}},
		"a file that is not YAML":   {"jobName: [digits\n", []string{"cannot read the values file ", "job.yaml"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := newSite(t, c.settings).Template(t.Context(), "pytorchjob-generator", "job.yaml")
			wording.Wanted(t, err, c.want...)
		})
	}
}

func TestAMissingFileIsNamed(t *testing.T) {
	site := newSite(t, good)
	_, err := site.Template(t.Context(), "pytorchjob-generator", "jop.yaml")
	wording.Wanted(t, err, "cannot read the values file "+filepath.Join(site.Checkout, "jop.yaml"), "no such file")
	_, err = site.Template(t.Context(), "mlbatch", "job.yaml")
	wording.Wanted(t, err, "cannot find the packaged chart mlbatch (run 'make charts')")
	broken := Release{Name: "x", Chart: filepath.Join(site.Checkout, "job.yaml")}
	_, err = broken.Template(t.Context())
	wording.Wanted(t, err, "cannot load the chart "+broken.Chart+" (package it with 'make release REGISTRY=REGISTRY')")
}

func TestAnUnreachableClusterIsExplained(t *testing.T) {
	site := newSite(t, good)
	kubeconfig := filepath.Join(site.Checkout, "kubeconfig")
	write(t, kubeconfig, "{apiVersion: v1, kind: Config, current-context: x, "+
		"clusters: [{name: x, cluster: {server: 'http://127.0.0.1:1'}}], contexts: [{name: x, context: {cluster: x}}]}")
	release, err := site.release("pytorchjob-generator", "default", "job.yaml")
	if err != nil {
		t.Fatal(err)
	}
	wording.Wanted(t, install.Apply(t.Context(), release, kubeconfig), "the release pytorchjob-generator in namespace default", "connection refused")
}
