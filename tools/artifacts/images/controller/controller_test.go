// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"github.com/mlbatch/mlbatch/setup"
)

var versions = setup.Versions{Module: "example.com/fork", Version: "1.2.3", ImageRepository: "registry.example.com/fork"}

// stamped returns a module whose program compiles quickly, to replace the controllers.
func stamped(t *testing.T, source string) string {
	t.Helper()
	checkout := t.TempDir()
	for name, text := range map[string]string{"go.mod": "module example.com/stamped\n\ngo 1.26\n", "main.go": source} {
		if err := os.WriteFile(filepath.Join(checkout, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return checkout
}

func TestTheImageSaysWhereItComesFromAndRunsUnprivileged(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.oci.tar")
	checkout := stamped(t, "package main\n\nvar version string\n\nfunc main() { println(version) }\n")

	if _, err := Controllers.build(t.Context(), checkout, map[string]string{"/manager": ".", "/runs": "."}, versions, path, []string{runtime.GOARCH}); err != nil {
		t.Fatal(err)
	}

	img, err := tarball.ImageFromPath(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	got, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	want := v1.Config{
		Entrypoint: []string{"/manager"},
		User:       "65532:65532",
		Env:        []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"},
		Labels: map[string]string{
			"org.opencontainers.image.title":    "MLBatch controller",
			"org.opencontainers.image.source":   "https://example.com/fork",
			"org.opencontainers.image.version":  "1.2.3",
			"org.opencontainers.image.licenses": "Apache-2.0",
		},
	}
	if diff := cmp.Diff(want, got.Config); diff != "" {
		t.Errorf("config (-want +got):\n%s", diff)
	}
}

func TestEachImageHasItsPrograms(t *testing.T) {
	for _, row := range []struct {
		image     Image
		reference string
		programs  map[string]string
	}{
		{Controllers, "registry.example.com/fork/controller:1.2.3", map[string]string{"/manager": "./controller", "/runs": "./controller/runs"}},
		{Agent, "registry.example.com/fork/agent:1.2.3", map[string]string{"/agent": "./controller/agent"}},
	} {
		if diff := cmp.Diff(row.programs, row.image.programs(versions)); diff != "" {
			t.Errorf("%s (-want +got)\n%s", row.image.Name, diff)
		}
		if got := row.image.Reference(versions); got != row.reference {
			t.Errorf("got %s, want %s", got, row.reference)
		}
		if _, has := row.programs[row.image.entrypoint]; !has {
			t.Errorf("%s starts %s, which it lacks", row.image.Name, row.image.entrypoint)
		}
	}
}

func TestTheBinaryIsReproducibleAndKnowsItsVersion(t *testing.T) {
	checkout := stamped(t, "package main\n\nvar version string\n\nfunc main() { println(version) }\n")
	var builds []string
	for range 2 {
		binary := filepath.Join(t.TempDir(), "p")
		if err := compile(t.Context(), checkout, ".", runtime.GOARCH, "1.2.3", binary); err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(binary)
		if err != nil {
			t.Fatal(err)
		}
		builds = append(builds, string(data))
	}
	if builds[0] != builds[1] {
		t.Error("two builds of one source differ")
	}
	if !strings.Contains(builds[0], "1.2.3") {
		t.Error("the version is not in the binary")
	}
}

func TestASourceThatDoesNotCompileLeavesNoArchive(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.oci.tar")
	_, err := Controllers.build(t.Context(), stamped(t, "package main\n\nfunc main() { nonsense }\n"), map[string]string{"/manager": "."}, versions, path, []string{runtime.GOARCH})
	if err == nil || !strings.Contains(err.Error(), "undefined: nonsense") {
		t.Errorf("error = %v, want the compiler's", err)
	}
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Errorf("there is an archive: %v", err)
	}
}
