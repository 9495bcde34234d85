// SPDX-License-Identifier: Apache-2.0

// Package charts_test tests the packaged charts: golden files show what they render,
// testdata/mistakes shows what they refuse, and the other tests check promises about the
// whole platform.
package charts_test

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/release"
	"sigs.k8s.io/yaml"

	"github.com/mlbatch/mlbatch/setup"
	"github.com/mlbatch/mlbatch/test/golden"
	"github.com/mlbatch/mlbatch/tools/artifacts/charts/packaging"
	"github.com/mlbatch/mlbatch/tools/mlbatch/parts"
)

const namespace = "mlbatch-system"

// ours are the charts with hand-written templates, and the folders of their golden files.
var ours = map[string]string{
	"mlbatch":              "testdata/mlbatch",
	"appwrapper":           "testdata/appwrapper",
	"coscheduler":          "testdata/coscheduler",
	"training-operator":    "testdata/training-operator",
	"kuberay-operator":     "testdata/kuberay-operator",
	"codeflare":            "testdata/codeflare",
	"teams":                "testdata/teams",
	"pytorchjob-generator": "../tools/pytorchjob-generator/testdata",
}

// thinCharts are the charts that exist only inside the umbrella chart.
var thinCharts = func() (names []string) {
	for _, p := range parts.All {
		if p.Chart.Folder != "" && p.Name != "appwrapper" {
			names = append(names, p.Name)
		}
	}
	return names
}()

var bundle = sync.OnceValues(func() (packaging.Bundle, error) {
	return packaging.Build(context.Background(), "..")
})

// archives are the packaged charts that users get, by name.
var archives = sync.OnceValues(func() (map[string][]byte, error) {
	made, err := bundle()
	if err != nil {
		return nil, err
	}
	all := map[string][]byte{}
	for _, packaged := range made.Charts {
		if all[packaged.Name], err = packaged.Archive(); err != nil {
			return nil, err
		}
	}
	return all, nil
})

var versions = sync.OnceValues(setup.Load)

func TestGolden(t *testing.T) {
	for name, folder := range ours {
		t.Run(name, func(t *testing.T) {
			golden.Pairs(t, folder, func(t *testing.T, in []byte) []byte {
				rendered, err := render(t, name, values(t, in))
				if err != nil {
					t.Fatal(err)
				}
				return readable(t, name, rendered.Manifest)
			})
		})
	}
}

// render renders a packaged chart, or the umbrella chart with only one part enabled, for
// the Kubernetes version of the local cluster.
func render(t *testing.T, name string, values map[string]any) (*release.Release, error) {
	t.Helper()
	return renderFor(t, here(t), name, values)
}

func renderFor(t *testing.T, kubernetes, name string, values map[string]any) (*release.Release, error) {
	t.Helper()
	if slices.Contains(thinCharts, name) {
		name, values = "mlbatch", alone(name, values)
	}
	return once(kubernetes, name, values, func() (*release.Release, error) {
		return packaging.Render(t.Context(), load(t, name), name, namespace, kubernetes, values)
	})
}

// renderLight is renderFor without the content of CRDs, which take most of the time, for tests that ask nothing about
// them.
func renderLight(t *testing.T, kubernetes, name string, values map[string]any) (*release.Release, error) {
	t.Helper()
	if slices.Contains(thinCharts, name) {
		name, values = "mlbatch", alone(name, values)
	}
	return once(kubernetes, "light "+name, values, func() (*release.Release, error) {
		return packaging.Render(t.Context(), withoutCRDs(t, name), name, namespace, kubernetes, values)
	})
}

func here(t *testing.T) string {
	t.Helper()
	return must(versions())(t).LocalCluster.Kubernetes
}

// load reads a chart from its archive. It does so for each call, because rendering
// modifies the chart.
func load(t *testing.T, name string) *chart.Chart {
	t.Helper()
	return must(loader.LoadArchive(bytes.NewReader(must(archives())(t)[name])))(t)
}

// alone returns values of the umbrella chart that disable all parts but one.
func alone(part string, values map[string]any) map[string]any {
	off := map[string]any{"enabled": false}
	all := map[string]any{"priorities": off, "priorityAndFairness": off, "roles": off, "kueue": off, "appwrapper": off}
	for _, other := range thinCharts {
		all[other] = off
	}
	all[part] = values
	if part == "codeflare" { // off by default, and of no use without what makes its AppWrappers and gangs run
		all["appwrapper"], all["coscheduler"] = map[string]any{"enabled": true}, map[string]any{"enabled": true}
		all[part] = with(values, path{"enabled"}, true)
	}
	return all
}

func values(t *testing.T, text []byte) map[string]any {
	t.Helper()
	parsed := map[string]any{}
	if err := yaml.UnmarshalStrict(text, &parsed); err != nil {
		t.Fatal(err)
	}
	return parsed
}

func must[T any](value T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}

// facts are objects whose content is generated or comes from upstream. Golden files list
// them without their content.
var facts = map[string]bool{
	"ClusterRole/appwrapper-manager-role":                                     true,
	"ClusterRole/codeflare-manager-role":                                      true,
	"ClusterRole/kuberay-operator":                                            true,
	"ClusterRole/training-operator":                                           true,
	"ValidatingWebhookConfiguration/validator.training-operator.kubeflow.org": true,
}

// templates is the comment with which Helm marks objects of a chart's own templates.
func templates(name string) string {
	if slices.Contains(thinCharts, name) {
		name = "mlbatch/charts/" + name
	}
	return "# Source: " + name + "/templates/"
}

// readable converts a manifest for review: the chart's own objects in full, and a list of
// the others.
func readable(t *testing.T, name, manifest string) []byte {
	t.Helper()
	var out strings.Builder
	var inventory []object
	for _, document := range strings.Split(manifest, "\n---\n") {
		document = strings.TrimPrefix(strings.TrimSpace(document), "---\n")
		object := parse(t, document)
		source, _, _ := strings.Cut(document, "\n")
		if !strings.HasPrefix(source, templates(name)) || facts[object.id()] || object.Kind == "CustomResourceDefinition" {
			inventory = append(inventory, object)
			continue
		}
		fmt.Fprintf(&out, "---\n%s\n", document)
	}
	for _, object := range inventory {
		fmt.Fprint(&out, object.line())
	}
	return []byte(out.String())
}
