// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"archive/tar"
	"errors"
	"io"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"github.com/mlbatch/mlbatch/setup"
)

var versions = setup.Versions{Module: "example.com/fork", Version: "1.2.3", ImageRepository: "registry.example.com/fork"}

// stamped returns a module whose program compiles quickly, to replace the controller.
func stamped(t *testing.T, source string) program {
	t.Helper()
	checkout := t.TempDir()
	for name, text := range map[string]string{"go.mod": "module example.com/stamped\n\ngo 1.26\n", "main.go": source} {
		if err := os.WriteFile(filepath.Join(checkout, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return program{checkout, ".", entrypoint}
}

func TestTheImageSaysWhereItComesFromAndRunsUnprivileged(t *testing.T) {
	file := filepath.Join(t.TempDir(), "x.oci.tar")
	p := stamped(t, "package main\n\nvar version string\n\nfunc main() { println(version) }\n")
	also := p
	also.path = ofRuns

	if _, err := build(t.Context(), []program{p, also}, versions, file, []string{runtime.GOARCH}); err != nil {
		t.Fatal(err)
	}

	img, err := tarball.ImageFromPath(file, nil)
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
	if got := programsOf(t, img); !slices.Equal(got, []string{"/manager", "/runs"}) {
		t.Errorf("it has the programs %q", got)
	}
}

// programsOf are the paths of the programs in an image.
func programsOf(t *testing.T, img v1.Image) []string {
	t.Helper()
	var programs []string
	files := tar.NewReader(mutate.Extract(img))
	for {
		file, err := files.Next()
		if errors.Is(err, io.EOF) {
			slices.Sort(programs)
			return programs
		}
		if err != nil {
			t.Fatal(err)
		}
		if file.Typeflag == tar.TypeReg && file.Mode&0o111 != 0 {
			programs = append(programs, path.Join("/", file.Name))
		}
	}
}

func TestTheBinaryIsReproducibleAndKnowsItsVersion(t *testing.T) {
	p := stamped(t, "package main\n\nvar version string\n\nfunc main() { println(version) }\n")
	var builds []string
	for range 2 {
		binary := filepath.Join(t.TempDir(), "p")
		if err := p.compile(t.Context(), runtime.GOARCH, "1.2.3", binary); err != nil {
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
	file := filepath.Join(t.TempDir(), "x.oci.tar")
	_, err := build(t.Context(), []program{stamped(t, "package main\n\nfunc main() { nonsense }\n")}, versions, file, []string{runtime.GOARCH})
	if err == nil || !strings.Contains(err.Error(), "undefined: nonsense") {
		t.Errorf("error = %v, want the compiler's", err)
	}
	if _, err := os.Stat(file); !os.IsNotExist(err) {
		t.Errorf("there is an archive: %v", err)
	}
}
