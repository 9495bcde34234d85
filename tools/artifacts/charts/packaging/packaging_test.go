// SPDX-License-Identifier: Apache-2.0

package packaging

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"sigs.k8s.io/yaml"

	"github.com/mlbatch/mlbatch/setup"
	"github.com/mlbatch/mlbatch/tools/mlbatch/parts"
)

const root = "../../../.."

func build(t *testing.T) Bundle {
	t.Helper()
	bundle, err := Build(t.Context(), root)
	if err != nil {
		t.Fatal(err)
	}
	return bundle
}

func TestEqualInputsGiveEqualBytes(t *testing.T) {
	first, second := t.TempDir(), t.TempDir()
	for _, dir := range []string{first, second} {
		if _, err := build(t).Write(dir); err != nil {
			t.Fatal(err)
		}
	}
	files, err := filepath.Glob(filepath.Join(first, "*"))
	if err != nil || len(files) == 0 {
		t.Fatalf("nothing is written: %v", err)
	}
	for _, file := range files {
		if !bytes.Equal(read(t, file), read(t, filepath.Join(second, filepath.Base(file)))) {
			t.Errorf("%s differs from run to run", filepath.Base(file))
		}
	}
}

// People install dist/mlbatch-*.tgz.
func TestArchivesOfOtherVersionsAreRemoved(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"mlbatch-0.0.9.tgz", "teams-1.2.3-rc.1.tgz", "mlbatch-docs-0.0.9.tgz", "mine.tgz"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("old"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	bundle := build(t)
	if _, err := bundle.Write(dir); err != nil {
		t.Fatal(err)
	}
	want := []string{"install.yaml", "mine.tgz", "mlbatch-docs-0.0.9.tgz"}
	for _, chart := range bundle.Charts {
		want = append(want, chart.FileName())
	}
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, file := range files {
		got = append(got, file.Name())
	}
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestHelmReadsEveryArchive(t *testing.T) {
	versions, err := setup.Load()
	if err != nil {
		t.Fatal(err)
	}
	for _, packaged := range build(t).Charts {
		archive, err := packaged.Archive()
		if err != nil {
			t.Fatal(err)
		}
		chart, err := loader.LoadArchive(bytes.NewReader(archive))
		if err != nil {
			t.Fatal(err)
		}
		if chart.Metadata.Version != versions.Version {
			t.Errorf("chart %s has version %s, want %s", chart.Name(), chart.Metadata.Version, versions.Version)
		}
		if home := "https://" + versions.Module; chart.Metadata.Home != home || len(chart.Metadata.Sources) == 0 {
			t.Errorf("chart %s has home %q and sources %q, want %q and some", chart.Name(), chart.Metadata.Home, chart.Metadata.Sources, home)
		}
		if chart.Name() == "mlbatch" && len(chart.Dependencies()) != len(chart.Metadata.Dependencies) {
			t.Errorf("the umbrella has %d parts inside, but declares %d", len(chart.Dependencies()), len(chart.Metadata.Dependencies))
		}
	}
}

func TestTheChangesAreThoseOfTheVersion(t *testing.T) {
	changelog := strings.ReplaceAll(`# Changelog

## Unreleased

### Fixed

- Soon.

## 1.2.0

A sentence.

### Added

- ['mlbatch check'](docs/check.md) finds
  what is **wrong**.

### Changed

- Less.

## 1.1.0

### Added

- Old.
`, "'", "`")
	added, changed := change{"added", "mlbatch check finds what is wrong."}, change{"changed", "Less."}
	for version, want := range map[string][]change{"1.2.0": {added, changed}, "1.1.0": {{"added", "Old."}}, "2.0.0": {{"fixed", "Soon."}}} {
		if diff := cmp.Diff(want, changesOf(changelog, version)); diff != "" {
			t.Errorf("%s (-want +got)\n%s", version, diff)
		}
	}
}

func TestInstallYAMLIsTheControllerAlone(t *testing.T) {
	kinds := map[string]int{}
	for _, document := range strings.Split(string(build(t).InstallYAML), "\n---\n") {
		var object struct {
			APIVersion, Kind string
			Metadata         struct{ Name, Namespace string }
		}
		if err := yaml.Unmarshal([]byte(document), &object); err != nil {
			t.Fatal(err)
		}
		if object.APIVersion == "" || object.Kind == "" || object.Metadata.Name == "" {
			t.Errorf("kubectl refuses the whole file, because this is no object:\n%s", document)
		}
		if ns := object.Metadata.Namespace; ns != "" && ns != installNamespace {
			t.Errorf("a %s is in namespace %s", object.Kind, ns)
		}
		kinds[object.Kind]++
	}
	for _, kind := range []string{"Namespace", "CustomResourceDefinition", "Deployment", "MutatingWebhookConfiguration"} {
		if kinds[kind] != 1 {
			t.Errorf("install.yaml has %d of kind %s, want 1", kinds[kind], kind)
		}
	}
}

// A slim CRD has the same schema: only descriptions are removed.
func TestSlimCRDsSayTheSame(t *testing.T) {
	text := `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: things.example.com
spec:
  versions:
    - additionalPrinterColumns: [{name: A, description: a column}]
      schema:
        openAPIV3Schema:
          description: |-
            Many
            words.
          required: [description]
          properties:
            description:
              description: A property that is called so.
              type: string
`
	file := filepath.Join(t.TempDir(), "crd.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	slim, err := slimCRD(file)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition",` +
		`"metadata":{"annotations":{"argocd.argoproj.io/sync-options":"Prune=false,ServerSideApply=true","helm.sh/resource-policy":"keep"},"name":"things.example.com"},` +
		`"spec":{"versions":[{"additionalPrinterColumns":[{"name":"A"}],"schema":{"openAPIV3Schema":` +
		`{"properties":{"description":{"type":"string"}},"required":["description"]}}}]}}`
	if diff := cmp.Diff(want, string(slim)); diff != "" {
		t.Error(diff)
	}
}

func TestSlimCRDTemplatesKeepTheirActions(t *testing.T) {
	text := `{{/* A comment. */}}
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  annotations:
    some: {{ .Values.annotation }}
  name: things.example.com
spec:
  group: example.com
  versions:
    - name: v1
      description: gone
`
	want := `{{/* A comment. */}}
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  annotations:
    argocd.argoproj.io/sync-options: Prune=false,ServerSideApply=true
    helm.sh/resource-policy: keep
    some: {{ .Values.annotation }}
  name: things.example.com
spec:
  group: "example.com"
  versions: [{"name":"v1"}]
`
	got, err := slimCRDTemplate([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Error(diff)
	}
	for why, broken := range map[string]string{
		"no group":            "metadata:\n  annotations:\n    a: b\nspec: {}\n",
		"an action too late":  strings.Replace(text, "name: v1", "name: {{ .Values.version }}", 1),
		"no annotations":      strings.Replace(text, "  annotations:\n", "  labels:\n", 1),
		"a rest without YAML": strings.Replace(text, "    - name", "  - - : name", 1),
	} {
		if _, err := slimCRDTemplate([]byte(broken)); err == nil {
			t.Errorf("%s: is not refused", why)
		}
	}
}

func TestTokensAreReplacedAndUnknownOnesNamed(t *testing.T) {
	files := map[string][]byte{"values.yaml": []byte("image: \"@controller.repository@:@controller.tag@\"\nmail: someone@example.com\n")}
	facts := map[string]string{"controller.repository": "example.com/c", "controller.tag": "1"}
	if err := stamp(files, facts); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff("image: \"example.com/c:1\"\nmail: someone@example.com\n", string(files["values.yaml"])); diff != "" {
		t.Error(diff)
	}
	files["values.yaml"] = []byte("image: \"@nobody.knows@\"")
	if err := stamp(files, maps.Clone(facts)); err == nil || !strings.Contains(err.Error(), "@nobody.knows@") {
		t.Errorf("got %v, want an error that names the token", err)
	}
}

func TestAPartIsADependencyWithASwitch(t *testing.T) {
	umbrella := Chart{Name: "u", Files: map[string][]byte{chartFile: []byte("apiVersion: v2\nname: u\nversion: 1.0.0\n")}}
	if err := umbrella.vendor(Chart{Name: "part", Version: "2.0.0", Files: map[string][]byte{"values.yaml": nil}}); err != nil {
		t.Fatal(err)
	}
	want := "apiVersion: v2\ndependencies:\n- condition: part.enabled\n  name: part\n  repository: \"\"\n  version: 2.0.0\nname: u\nversion: 1.0.0\n"
	if diff := cmp.Diff(want, string(umbrella.Files[chartFile])); diff != "" {
		t.Error(diff)
	}
	if _, inside := umbrella.Files["charts/part/values.yaml"]; !inside {
		t.Error("the part is not inside")
	}
}

func read(t *testing.T, file string) []byte {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// Every CRD of every part except Kueue still decodes to a schema.
func TestRealCRDsDecode(t *testing.T) {
	bundle := build(t)
	platform, err := bundle.Chart("mlbatch")
	if err != nil {
		t.Fatal(err)
	}
	count := 0
	for name, text := range platform.Files {
		if !strings.Contains(name, "/files/crds/") || strings.Contains(name, "/appwrapper/") {
			continue
		}
		count++
		var crd struct {
			Spec struct{ Versions []map[string]any }
		}
		if err := yaml.Unmarshal(text, &crd); err != nil || len(crd.Spec.Versions) == 0 {
			t.Errorf("%s is no CRD: %v", name, err)
		}
		if ours := strings.Contains(name, "/codeflare/"); !ours && bytes.Contains(text, []byte(`"description":"`)) {
			t.Errorf("%s has descriptions left", name)
		} else if ours && !bytes.Contains(text, []byte("description: ")) {
			t.Errorf("kubectl explain would have nothing to say of %s", name)
		}
	}
	const optional = 3 // JobSet, LeaderWorkerSet, and DisaggregatedSet, without which the LeaderWorkerSet controller exits
	want := optional
	for _, p := range parts.All {
		want += len(p.Chart.CRDs)
	}
	if count != want {
		t.Errorf("the umbrella has %d CRDs of parts other than Kueue, want %d", count, want)
	}
}

func TestASchemaKnowsWhatValuesAndTemplatesName(t *testing.T) {
	files := map[string][]byte{
		"values.yaml":             []byte("image: {tag: a}\nresources: {requests: {cpu: 1}}\nmore: {}\nlist: []\nunset:\n"),
		"templates/a.yaml":        []byte("{{ .Values.image.tag }}{{ .Values.account.name }}{{ .Values.more.one }}{{ .Values.unset }}{{ .Values.image.digest }}"),
		"templates/nested/b.yaml": []byte("{{ .Values.account.create }}"),
	}
	if err := addSchema(files); err != nil {
		t.Fatal(err)
	}
	for name, row := range map[string]struct {
		values map[string]any
		says   string
	}{
		"what values have":              {map[string]any{"image": map[string]any{"tag": "b"}, "list": []any{1}, "unset": 1}, ""},
		"what only templates name":      {map[string]any{"account": map[string]any{"name": "b", "create": true}, "image": map[string]any{"digest": "c"}}, ""},
		"keys of Kubernetes":            {map[string]any{"resources": map[string]any{"limits": 1}}, ""},
		"keys of an empty section":      {map[string]any{"more": map[string]any{"two": 2}}, ""},
		"what Helm and the umbrella do": {map[string]any{"global": map[string]any{"a": 1}, "enabled": true}, ""},
		"null":                          {map[string]any{"image": nil}, ""},
		"another key":                   {map[string]any{"images": 1}, "'images' not allowed"},
		"another key in a section":      {map[string]any{"image": map[string]any{"tags": 1}}, "'tags' not allowed"},
		"another key beside a template": {map[string]any{"account": map[string]any{"names": 1}}, "'names' not allowed"},
	} {
		t.Run(name, func(t *testing.T) {
			err := chartutil.ValidateAgainstSingleSchema(row.values, files["values.schema.json"])
			if (err == nil) != (row.says == "") || err != nil && !strings.Contains(err.Error(), row.says) {
				t.Errorf("got %v, want %q", err, row.says)
			}
		})
	}
}
