// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/registry"
	"helm.sh/helm/v3/pkg/chart/loader"
	helmregistry "helm.sh/helm/v3/pkg/registry"
	"oras.land/oras-go/v2"
	"oras.land/oras-go/v2/content/memory"
	"oras.land/oras-go/v2/registry/remote"

	"github.com/mlbatch/mlbatch/setup"
	"github.com/mlbatch/mlbatch/tools/artifacts/charts/packaging"
	"github.com/mlbatch/mlbatch/tools/artifacts/compiler"
	"github.com/mlbatch/mlbatch/tools/artifacts/images/archive"
)

// programs returns a checkout with programs that compile quickly, to replace the controllers and
// the mlbatch command.
func programs(t *testing.T) string {
	t.Helper()
	checkout := t.TempDir()
	for path, text := range map[string]string{
		"go.mod":                   "module example.com/programs\n\ngo 1.26\n",
		"controller/main.go":       "package main\n\nvar version string\n\nfunc main() { println(version) }\n",
		"controller/runs/main.go":  "package main\n\nvar version string\n\nfunc main() { println(version) }\n",
		"controller/agent/main.go": "package main\n\nvar version string\n\nfunc main() { println(version) }\n",
		"tools/mlbatch/main.go":    "package main\n\nfunc main() {}\n",
	} {
		path = filepath.Join(checkout, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return checkout
}

// released writes a release for a registry folder; "" means the one in setup/versions.yaml.
func released(t *testing.T, folder string) *release {
	t.Helper()
	versions, err := setup.Load()
	if err != nil {
		t.Fatal(err)
	}
	if folder != "" {
		versions = versions.ReleasedTo(folder)
	}
	r := &release{versions: versions, charts: "../../..", sources: programs(t), out: t.TempDir(), progress: io.Discard, compile: forThisMachine}
	if err := r.write(t.Context()); err != nil {
		t.Fatal(err)
	}
	return r
}

// forThisMachine compiles a command once, for this machine, because the libraries of five other
// platforms take minutes. 'make platforms' compiles for them.
func forThisMachine(ctx context.Context, command compiler.Program, out string) error {
	if command.OS == "" || command.Arch == "" {
		return errors.New("the command is for no platform")
	}
	if text, err := os.ReadFile(filepath.Join(filepath.Dir(out), platforms[0].fileName())); err == nil {
		return os.WriteFile(out, text, 0o755)
	}
	command.OS, command.Arch = "", ""
	return command.Compile(ctx, out)
}

func TestACommandIsReleasedForEachPlatformThatIsTested(t *testing.T) {
	text, err := os.ReadFile("../../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	tested := regexp.MustCompile(`(?m)^PLATFORMS .*= (.*)$`).FindStringSubmatch(string(text))
	if tested == nil {
		t.Fatal("the Makefile has no PLATFORMS")
	}
	var released []string
	for _, p := range platforms {
		released = append(released, p.os+"/"+p.arch)
	}
	if diff := cmp.Diff(strings.Fields(tested[1]), released); diff != "" {
		t.Errorf("'make platforms' compiles for, and a release has (-want +got):\n%s", diff)
	}
}

// files reads all files in a folder.
func files(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string][]byte{}
	for _, entry := range entries {
		if all[entry.Name()], err = os.ReadFile(filepath.Join(dir, entry.Name())); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

func TestAReleaseIsReproducibleAndHasABillOfMaterials(t *testing.T) {
	first, second := files(t, released(t, "").out), files(t, released(t, "").out)

	var names []string
	for name, text := range first {
		names = append(names, name)
		if !bytes.Equal(text, second[name]) {
			t.Errorf("%s is not the same in two releases of one checkout", name)
		}
	}
	slices.Sort(names)
	want := []string{
		"SHA256SUMS", "agent-0.1.0.oci.tar", "appwrapper-0.1.0.tgz", "controller-0.1.0.oci.tar", "install.yaml", "mlbatch-0.1.0.tgz",
		"mlbatch-darwin-amd64", "mlbatch-darwin-arm64", "mlbatch-linux-amd64", "mlbatch-linux-arm64", "mlbatch-windows-amd64.exe", "mlbatch-windows-arm64.exe",
		"pytorchjob-generator-0.1.0.tgz", "sbom.cdx.json", "teams-0.1.0.tgz",
	}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	for _, name := range want[1:] {
		if name != "sbom.cdx.json" && !bytes.Contains(first["sbom.cdx.json"], []byte("file:"+name)) {
			t.Errorf("the bill of materials lacks %s", name)
		}
		if line := fmt.Sprintf("%x  %s\n", sha256.Sum256(first[name]), name); !strings.Contains(string(first["SHA256SUMS"]), line) {
			t.Errorf("SHA256SUMS lacks %q, it has:\n%s", line, first["SHA256SUMS"])
		}
	}
}

func TestTheRegistryHasTheReleasedFiles(t *testing.T) {
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	folder := strings.TrimPrefix(server.URL, "http://") + "/some/mlbatch"
	r := released(t, folder)
	var said strings.Builder
	r.progress = &said

	for range 2 { // a push can be repeated after an interruption
		if err := r.push(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if lines := strings.SplitAfter(said.String(), "\n"); !slices.Equal(lines[:len(lines)/2], lines[len(lines)/2:len(lines)-1]) {
		t.Errorf("what is pushed again has other digests:\n%s", &said)
	}

	for name, reference := range map[string]string{"controller": r.versions.ControllerImage(), "agent": r.versions.AgentImage()} {
		digest := pulledImage(t, reference)
		if line := "pushed " + reference + "@" + digest + "\n"; !strings.Contains(said.String(), line) {
			t.Errorf("what is pulled is %s, and it was said:\n%s", digest, &said)
		}
		if written := files(t, r.out)[filepath.Base(r.images[name])]; !bytes.Contains(written, []byte(digest)) {
			t.Errorf("the image %s that is pulled is not that of the archive", name)
		}
	}
	for _, chart := range r.bundle.Charts {
		pulled, manifest := pull(t, folder, chart)
		if !strings.Contains(manifest, "1970-01-01T00:00:00Z") {
			t.Errorf("the manifest of chart %s has the time at which it was pushed:\n%s", chart.Name, manifest)
		}
		if !bytes.Equal(pulled, files(t, r.out)[chart.FileName()]) {
			t.Errorf("the chart %s that is pulled is not the one that was written", chart.Name)
		}
		if chart.Name == "mlbatch" && !strings.Contains(rendered(t, pulled), "image: "+r.versions.ControllerImage()+"\n") {
			t.Errorf("the chart that is pulled does not pull its image from %s", folder)
		}
	}
	if !bytes.Contains(files(t, r.out)["install.yaml"], []byte("image: "+r.versions.ControllerImage()+"\n")) {
		t.Errorf("install.yaml does not pull its image from %s", folder)
	}
}

// rendered returns the manifest of the platform's chart with default values.
func rendered(t *testing.T, archive []byte) string {
	t.Helper()
	chart, err := loader.LoadArchive(bytes.NewReader(archive))
	if err != nil {
		t.Fatal(err)
	}
	release, err := packaging.Render(t.Context(), chart, "mlbatch", "mlbatch-system", "1.34.4", nil)
	if err != nil {
		t.Fatal(err)
	}
	return release.Manifest
}

// pulledImage pulls an image with all platforms, which verifies all digests, and returns the
// image's digest.
func pulledImage(t *testing.T, reference string) string {
	t.Helper()
	there, err := remote.NewRepository(reference)
	if err != nil {
		t.Fatal(err)
	}
	there.PlainHTTP = true
	pulled, err := oras.Copy(t.Context(), there, there.Reference.Reference, memory.New(), "", oras.DefaultCopyOptions)
	if err != nil {
		t.Fatal(err)
	}
	return pulled.Digest.String()
}

// pull pulls a chart as helm pull does.
func pull(t *testing.T, folder string, chart packaging.Chart) (archive []byte, manifest string) {
	t.Helper()
	client, err := helmregistry.NewClient(helmregistry.ClientOptPlainHTTP())
	if err != nil {
		t.Fatal(err)
	}
	pulled, err := client.Pull(folder + "/charts/" + chart.Name + ":" + chart.Version)
	if err != nil {
		t.Fatal(err)
	}
	return pulled.Chart.Data, string(pulled.Manifest.Data)
}

func TestAnImageWithoutAProgramIsNotReleased(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.oci.tar")
	image := archive.Image{Reference: "registry.example.com/x:1", Platforms: []archive.Platform{
		{OS: "linux", Arch: "amd64", Layers: []*archive.Layer{archive.Nonroot()}},
	}}
	if err := archive.Write(path, image); err != nil {
		t.Fatal(err)
	}
	if _, err := programsOf(t.Context(), path, "1"); err == nil || !strings.Contains(err.Error(), "cannot find a program") {
		t.Errorf("got %v", err)
	}
}

func TestMistakesAreOneSentence(t *testing.T) {
	for name, row := range map[string]struct {
		args []string
		want string
	}{
		"a scheme":             {[]string{"-registry", "oci://ghcr.io/mlbatch"}, "is not a registry folder"},
		"no host":              {[]string{"-registry", "mlbatch/images"}, "is not a registry folder"},
		"no folder":            {[]string{"-registry", "ghcr.io"}, "is not a registry folder"},
		"a slash at the end":   {[]string{"-registry", "ghcr.io/mlbatch/"}, "is not a registry folder"},
		"a registry as a word": {[]string{"ghcr.io/mlbatch"}, "-registry HOST/FOLDER"},
	} {
		t.Run(name, func(t *testing.T) {
			out := filepath.Join(t.TempDir(), "dist")
			err := run(t.Context(), append([]string{"-out", out}, row.args...), io.Discard)
			if err == nil || !strings.Contains(err.Error(), row.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("got %v, want one sentence with %q", err, row.want)
			}
			if _, err := os.Stat(out); !os.IsNotExist(err) {
				t.Errorf("something was written: %v", err)
			}
		})
	}
}
