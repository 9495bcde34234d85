// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package helm_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"

	"github.com/mlbatch/mlbatch/tools/artifacts/charts/packaging"
)

const namespace = "mlbatch-system"

// examples returns values files of each chart that users install; "" stands for none.
func examples(t *testing.T) map[string][]string {
	t.Helper()
	all := map[string][]string{"appwrapper": {""}, "mlbatch": {""}, "teams": nil}
	for chart, pattern := range map[string]string{"mlbatch": "setup/profiles/*.yaml", "teams": "setup/teams/*.yaml"} {
		files, err := filepath.Glob(filepath.Join(checkout, pattern))
		if err != nil || len(files) == 0 {
			t.Fatalf("there are no %s (%v)", pattern, err)
		}
		all[chart] = append(all[chart], files...)
	}
	return all
}

// bySDK renders a chart with the SDK, as all other tests do.
func bySDK(t *testing.T, archive, chart, values string) string {
	t.Helper()
	loaded, err := loader.Load(archive)
	if err != nil {
		t.Fatal(err)
	}
	var in map[string]any
	if values != "" {
		if in, err = chartutil.ReadValuesFile(values); err != nil {
			t.Fatal(err)
		}
	}
	rendered, err := packaging.Render(t.Context(), loaded, chart, namespace, versions.LocalCluster.Kubernetes, in)
	if err != nil {
		t.Fatal(err)
	}
	return rendered.Manifest
}

// Helm 3 prints exactly the same bytes. Helm 4 adds an empty line after each document, and
// installs policies and FlowSchemas after validating webhooks instead of before them; otherwise the
// documents and their order are the same.
func TestBothHelmsRenderWhatTheSDKDoes(t *testing.T) {
	for chart, files := range examples(t) {
		for _, values := range files {
			want := bySDK(t, packaged(chart), chart, values)
			for _, c := range clients {
				t.Run(c.name+"/"+chart+"/"+filepath.Base(values), func(t *testing.T) {
					got := c.template(t, packaged(chart), chart, values)
					if c.name == "helm3" && strings.TrimSpace(got) != strings.TrimSpace(want) {
						t.Error("the output differs from the SDK's")
					}
					if diff := cmp.Diff(documents(want), documents(got)); diff != "" {
						t.Errorf("(-SDK +%s)\n%s", c.name, diff)
					}
				})
			}
		}
	}
}

func documents(manifest string) []string {
	all := strings.Split("\n"+strings.TrimSpace(manifest), "\n---\n")
	for i := range all {
		all[i] = strings.TrimSpace(all[i])
	}
	slices.SortStableFunc(all, func(a, b string) int { return last(a) - last(b) })
	return all
}

// last is 1 for a policy, its binding, or a FlowSchema, and 0 for anything else.
func last(document string) int {
	return strings.Count(document, "\nkind: ValidatingAdmissionPolicy") + strings.Count(document, "\nkind: FlowSchema\n")
}

func (c client) template(t *testing.T, archive, chart, values string) string {
	t.Helper()
	args := []string{"template", chart, archive, "--namespace", namespace, "--kube-version", versions.LocalCluster.Kubernetes}
	if values != "" {
		args = append(args, "--values", values)
	}
	return c.says(t, args...)
}

func TestBothHelmsFindNothingToSayAboutOurCharts(t *testing.T) {
	for _, c := range clients {
		for _, chart := range bundle.Charts {
			t.Run(c.name+"/"+chart.Name, func(t *testing.T) {
				args := []string{"lint", packaged(chart.Name), "--strict", "--quiet", "--kube-version", versions.LocalCluster.Kubernetes}
				if chart.Name == "pytorchjob-generator" {
					args = append(args, "--values", filepath.Join(checkout, "samples/pytorch-digits/settings.yaml"))
				}
				if said := c.says(t, args...); strings.TrimSpace(said) != "" {
					t.Errorf("it says\n%s", said)
				}
			})
		}
	}
}

// The charts around ours come out of both Helms as out of the SDK, which the tests of charts use.
func TestBothHelmsRenderAPlatformOfOnesOwn(t *testing.T) {
	for name, inner := range map[string]string{"operators": "mlbatch", "teams": "teams"} {
		dir := filepath.Join(t.TempDir(), name)
		if err := os.CopyFS(dir, os.DirFS(filepath.Join(checkout, "samples/platform", name))); err != nil {
			t.Fatal(err)
		}
		archive, err := os.ReadFile(packaged(inner))
		if err == nil {
			err = os.MkdirAll(filepath.Join(dir, "charts"), 0o755)
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, "charts", filepath.Base(packaged(inner))), archive, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		want := bySDK(t, dir, inner, "")
		for _, c := range clients {
			t.Run(c.name+"/"+name, func(t *testing.T) {
				if diff := cmp.Diff(documents(want), documents(c.template(t, dir, inner, ""))); diff != "" {
					t.Errorf("(-SDK +%s)\n%s", c.name, diff)
				}
				if list := c.says(t, "dependency", "list", dir); !strings.Contains(list, "ok") || strings.Contains(list, "missing") {
					t.Errorf("its dependencies are\n%s", list)
				}
				if said := c.says(t, "lint", dir, "--strict", "--quiet", "--kube-version", versions.LocalCluster.Kubernetes); strings.TrimSpace(said) != "" {
					t.Errorf("lint says\n%s", said)
				}
			})
		}
	}
}

// A fork changes files and packages the charts again, with its own Helm.
func TestWhatBothHelmsPackageAgainRendersTheSame(t *testing.T) {
	for _, c := range clients {
		for _, chart := range []string{"mlbatch", "teams"} {
			t.Run(c.name+"/"+chart, func(t *testing.T) {
				dir := t.TempDir()
				unpack(t, chart, dir)
				c.says(t, "package", filepath.Join(dir, chart), "--destination", dir)
				values := filepath.Join(checkout, "setup/teams/three-teams.yaml")
				if chart == "mlbatch" {
					values = ""
				}
				again := bySDK(t, filepath.Join(dir, filepath.Base(packaged(chart))), chart, values)
				if diff := cmp.Diff(bySDK(t, packaged(chart), chart, values), again); diff != "" {
					t.Errorf("(-ours +packaged again)\n%s", diff)
				}
			})
		}
	}
}

// unpack writes the files of a chart to a folder below dir.
func unpack(t *testing.T, name, dir string) {
	t.Helper()
	chart, err := bundle.Chart(name)
	if err != nil {
		t.Fatal(err)
	}
	for file, text := range chart.Files {
		path := filepath.Join(dir, name, file)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
