// SPDX-License-Identifier: Apache-2.0

// Package controller builds the container image of our controllers: their static binaries for each
// architecture, the account they run as, and nothing else.
package controller

import (
	"context"
	"fmt"
	"os"
	"path"
	"path/filepath"

	"github.com/mlbatch/mlbatch/setup"
	"github.com/mlbatch/mlbatch/tools/artifacts/compiler"
	"github.com/mlbatch/mlbatch/tools/artifacts/images/archive"
)

// Published are the architectures of a release.
var Published = []string{"amd64", "arm64"}

// entrypoint is the path of the program, which the chart's Deployment runs. Earlier AppWrapper
// controllers have the same path.
const entrypoint = "/manager"

// ofRuns is the path of the controller of Runs.
const ofRuns = "/runs"

// Build compiles the controller of a checkout for some architectures and writes
// their image to controller-<version>.oci.tar in the folder out.
func Build(ctx context.Context, checkout, out string, archs ...string) (archivePath string, err error) {
	v, err := setup.Load()
	if err != nil {
		return "", err
	}
	return BuildAs(ctx, v, checkout, out, archs...)
}

// BuildAs is Build with a version or a registry that differs from setup/versions.yaml.
func BuildAs(ctx context.Context, v setup.Versions, checkout, out string, archs ...string) (archivePath string, err error) {
	if err := os.MkdirAll(out, 0o755); err != nil {
		return "", fmt.Errorf("cannot create the folder for images: %w", err)
	}
	programs := []program{{checkout, "./controller", entrypoint}, {checkout, "./controller/runs", ofRuns}}
	return build(ctx, programs, v, filepath.Join(out, "controller-"+v.Version+".oci.tar"), archs)
}

// build compiles the binaries into a temporary folder, and writes the archive.
func build(ctx context.Context, programs []program, v setup.Versions, file string, archs []string) (string, error) {
	dir, err := os.MkdirTemp("", "mlbatch-image-")
	if err != nil {
		return "", fmt.Errorf("cannot build the controller image: %w", err)
	}
	defer os.RemoveAll(dir)
	i := archive.Image{
		Reference:  v.ControllerImage(),
		Entrypoint: []string{entrypoint},
		Labels: map[string]string{
			"org.opencontainers.image.title":    "MLBatch controller",
			"org.opencontainers.image.source":   "https://" + v.Module,
			"org.opencontainers.image.version":  v.Version,
			"org.opencontainers.image.licenses": "Apache-2.0",
		},
	}
	for _, arch := range archs {
		files := make([]archive.File, len(programs))
		for n, p := range programs {
			files[n] = archive.File{Path: p.path, Mode: 0o755, Source: filepath.Join(dir, path.Base(p.path)+"-"+arch)}
			if err := p.compile(ctx, arch, v.Version, files[n].Source); err != nil {
				return "", err
			}
		}
		i.Platforms = append(i.Platforms, archive.Platform{OS: "linux", Arch: arch, Layers: []*archive.Layer{archive.Nonroot(), archive.Files(files...)}})
	}
	return file, archive.Write(file, i)
}

// A program is a main package of a checkout, and where the image has it.
type program struct{ checkout, pkg, path string }

func (p program) compile(ctx context.Context, arch, version, binary string) error {
	c := compiler.Program{
		Dir: p.checkout, Packages: []string{p.pkg}, Ldflags: "-X main.version=" + version,
		OS: "linux", Arch: arch,
	}
	if err := c.Compile(ctx, binary); err != nil {
		return fmt.Errorf("cannot build %s for linux/%s: %w", p.pkg, arch, err)
	}
	return nil
}
