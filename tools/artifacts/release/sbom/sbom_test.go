// SPDX-License-Identifier: Apache-2.0

package sbom_test

import (
	"bytes"
	"runtime/debug"
	"testing"

	cdx "github.com/CycloneDX/cyclonedx-go"
	"github.com/google/go-cmp/cmp"

	"github.com/mlbatch/mlbatch/setup"
	"github.com/mlbatch/mlbatch/tools/artifacts/release/sbom"
)

// files returns two programs that share a module, and a chart.
func files() []sbom.File {
	fork := &debug.Module{Path: "example.com/asked", Version: "v1.0.0", Replace: &debug.Module{Path: "example.com/fork", Version: "v1.0.1"}}
	shared := &debug.Module{Path: "example.com/shared", Version: "v0.2.0"}
	return []sbom.File{
		{Name: "one", SHA256: "01", Programs: []*debug.BuildInfo{
			{GoVersion: "go1.26.0", Deps: []*debug.Module{shared, fork}},
			{GoVersion: "go1.26.0", Deps: []*debug.Module{shared}},
		}},
		{Name: "two", SHA256: "02", Programs: []*debug.BuildInfo{{GoVersion: "go1.26.0", Deps: []*debug.Module{shared}}}},
		{Name: "chart.tgz", SHA256: "03", Images: []string{"registry.k8s.io:443/kueue/kueue:v0.19.2"}},
	}
}

func TestTheBillListsTheContentOfEachFile(t *testing.T) {
	bill, err := sbom.Of(setup.Versions{Module: "example.com/ours", Version: "1.2.3"}, files())
	if err != nil {
		t.Fatal(err)
	}
	var bom cdx.BOM
	if err := cdx.NewBOMDecoder(bytes.NewReader(bill), cdx.BOMFileFormatJSON).Decode(&bom); err != nil {
		t.Fatal(err)
	}
	var components []string
	for _, c := range *bom.Components {
		components = append(components, string(c.Type)+" "+c.Name+" "+c.Version)
	}
	if diff := cmp.Diff([]string{
		"file chart.tgz ", "file one ", "file two ",
		"library example.com/fork v1.0.1", "library example.com/shared v0.2.0", "library std 1.26.0",
		"container registry.k8s.io:443/kueue/kueue v0.19.2",
	}, components); diff != "" {
		t.Errorf("components (-want +got):\n%s", diff)
	}
	needs := map[string][]string{}
	for _, d := range *bom.Dependencies {
		needs[d.Ref] = *d.Dependencies
	}
	const fork, shared, std = "pkg:golang/example.com/fork@v1.0.1", "pkg:golang/example.com/shared@v0.2.0", "pkg:golang/std@1.26.0"
	if diff := cmp.Diff(map[string][]string{
		"product":        {"file:chart.tgz", "file:one", "file:two"},
		"file:one":       {fork, shared, std},
		"file:two":       {shared, std},
		"file:chart.tgz": {"pkg:oci/kueue?repository_url=registry.k8s.io%3A443%2Fkueue%2Fkueue&tag=v0.19.2"},
	}, needs); diff != "" {
		t.Errorf("dependencies (-want +got):\n%s", diff)
	}
	if c := bom.Metadata.Component; c.Name != "mlbatch" || c.PackageURL != "pkg:golang/example.com/ours@1.2.3" {
		t.Errorf("it is the bill of %s, %s", c.Name, c.PackageURL)
	}
}

func TestTheBillIsTheSameEachTime(t *testing.T) {
	first, err := sbom.Of(setup.Versions{}, files())
	if err != nil {
		t.Fatal(err)
	}
	for range 20 { // the order of maps differs each time
		if again, err := sbom.Of(setup.Versions{}, files()); err != nil || !bytes.Equal(first, again) {
			t.Fatalf("it differs (%v):\n%s\nand\n%s", err, first, again)
		}
	}
}
