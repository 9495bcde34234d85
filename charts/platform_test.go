// SPDX-License-Identifier: Apache-2.0

package charts_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"github.com/mlbatch/mlbatch/controller/runschema"
	"github.com/mlbatch/mlbatch/tools/artifacts/charts/packaging"
)

// around are the charts of samples/platform, and ours in each.
var around = map[string]string{"operators": "mlbatch", "teams": "teams"}

// loadAround reads a chart of samples/platform as 'helm dependency update' leaves it.
func loadAround(t *testing.T, name string) *chart.Chart {
	t.Helper()
	outer := must(loader.LoadDir(filepath.Join("..", "samples", "platform", name)))(t)
	outer.AddDependency(load(t, around[name]))
	return outer
}

func TestAPlatformOfOnesOwnNamesOurCharts(t *testing.T) {
	v := must(versions())(t)
	for name, inner := range around {
		want := []chart.Dependency{{Name: inner, Version: v.Version, Repository: v.ChartRepository}}
		var got []chart.Dependency
		for _, d := range loadAround(t, name).Metadata.Dependencies {
			got = append(got, *d)
		}
		if diff := gocmp.Diff(want, got); diff != "" {
			t.Errorf("%s depends on (-want +got)\n%s", name, diff)
		}
	}
}

// A chart around ours renders what ours does, with the values below its name.
func TestAPlatformOfOnesOwnIsOursWithItsValues(t *testing.T) {
	for name, inner := range around {
		t.Run(name, func(t *testing.T) {
			outer := loadAround(t, name)
			values, _ := outer.Values[inner].(map[string]any)
			if globals, is := outer.Values[chartutil.GlobalKey].(map[string]any); is {
				values[chartutil.GlobalKey] = globals
			}
			alone := map[string]bool{}
			for _, document := range documentsOf(must(render(t, inner, values))(t).Manifest) {
				alone[document] = true
			}
			rendered := must(packaging.Render(t.Context(), outer, inner, namespace, here(t), nil))(t)
			var own []string
			for _, document := range documentsOf(rendered.Manifest) {
				if !alone[document] {
					own = append(own, kindOf(t, document)+" "+headOf(t, document).Name)
				}
				delete(alone, document)
			}
			want := map[string][]string{"teams": {
				"codeflare.dev/v1alpha1 Application digits", "codeflare.dev/v1alpha1 DataSet pictures", "rbac.authorization.k8s.io/v1 Role catalogue",
				"rbac.authorization.k8s.io/v1 RoleBinding catalogue", "v1 Namespace catalogue",
			}}[name]
			slices.Sort(own)
			if diff := gocmp.Diff(want, own); diff != "" {
				t.Errorf("it renders, besides what ours does (-want +got)\n%s", diff)
			}
			for document := range alone {
				t.Errorf("it lacks\n%s", document)
			}
		})
	}
}

// documentsOf are the documents of a manifest without the names of their templates.
func documentsOf(manifest string) (all []string) {
	for _, document := range strings.Split("\n"+manifest, "\n---\n") {
		if rest, is := strings.CutPrefix(document, "# Source: "); is {
			_, document, _ = strings.Cut(rest, "\n")
		}
		if document = strings.TrimSpace(document); document != "" {
			all = append(all, document)
		}
	}
	return all
}

// The API server of a cluster with Runs accepts the catalogue.
func TestTheCatalogueOfAPlatformIsAccepted(t *testing.T) {
	crds := must(runschema.CRDs())(t)
	checked := 0
	for _, document := range documentsOf(must(packaging.Render(t.Context(), loadAround(t, "teams"), "teams", namespace, here(t), nil))(t).Manifest) {
		var object map[string]any
		if err := yaml.Unmarshal([]byte(document), &object); err != nil {
			t.Fatal(err)
		}
		kind, _ := object["kind"].(string)
		crd := crds[kind]
		if crd == nil {
			continue
		}
		checked++
		for _, problem := range problemsOf(t, crd.Spec.Versions[0].Schema.OpenAPIV3Schema, field.NewPath(kind), object) {
			t.Error(problem)
		}
	}
	if checked < 3 {
		t.Errorf("%d objects were checked", checked)
	}
}

func TestAPlatformOfOnesOwnRefusesMistakes(t *testing.T) {
	var rows []struct {
		Chart  string         `json:"chart"`
		Values map[string]any `json:"values"`
		Says   string         `json:"says"`
	}
	if err := yaml.UnmarshalStrict(must(os.ReadFile("testdata/mistakes/platform.yaml"))(t), &rows); err != nil {
		t.Fatal(err)
	}
	for _, row := range rows {
		t.Run(row.Chart+" "+row.Says, func(t *testing.T) {
			_, err := packaging.Render(t.Context(), loadAround(t, row.Chart), around[row.Chart], namespace, here(t), row.Values)
			if err == nil {
				t.Fatal("the values are accepted")
			}
			if !strings.Contains(err.Error(), row.Says) {
				t.Errorf("got the error: %v", err)
			}
		})
	}
}

// A tag may end with a digest: then nothing else is pulled, whoever moves the tag.
func TestImagesOfAPlatformMayHaveDigests(t *testing.T) {
	const digest = "@sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
	every := values(t, must(os.ReadFile("../setup/profiles/every-part.yaml"))(t))
	outer := load(t, "mlbatch")
	merged := must(chartutil.CoalesceValues(outer, every))(t)
	// Without a tag, the scheduler has the version of the cluster.
	for _, image := range []string{"scheduler", "controller"} {
		merged = with(map[string]any(merged), path{"coscheduler", image, "image", "tag"}, "v0.34.7").(map[string]any)
	}
	pinned := withDigests(map[string]any(merged), digest).(map[string]any)
	pulled := 0
	for _, o := range objects(t, must(render(t, "mlbatch", pinned))(t).Manifest) {
		for _, container := range o.containers() {
			pulled++
			if !strings.HasSuffix(container.Image, digest) {
				t.Errorf("%s pulls %s", o.id(), container.Image)
			}
		}
	}
	if pulled < 9 {
		t.Errorf("%d images are pulled", pulled)
	}
}

// withDigests adds a digest to all tags.
func withDigests(value any, digest string) any {
	fields, is := value.(map[string]any)
	if !is {
		return value
	}
	changed := map[string]any{}
	for key, field := range fields {
		changed[key] = withDigests(field, digest)
		if tag, is := field.(string); is && key == "tag" {
			changed[key] = tag + digest
		}
	}
	return changed
}
