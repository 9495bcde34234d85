// SPDX-License-Identifier: Apache-2.0

// Package controller builds the container image of our controllers: their static binaries for each
// architecture, the account they run as, and nothing else.
package controller

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/mlbatch/mlbatch/setup"
	"github.com/mlbatch/mlbatch/tools/artifacts/compiler"
	"github.com/mlbatch/mlbatch/tools/artifacts/images/archive"
	"github.com/mlbatch/mlbatch/tools/mlbatch/parts"
)

// Published are the architectures of a release.
var Published = []string{"amd64", "arm64"}

// entrypoint is the path of the AppWrapper controller, which the chart's Deployment runs. Earlier
// AppWrapper controllers have the same path.
const entrypoint = "/manager"

// ours are the folders of our controllers' main packages, by their paths in the image.
func ours() map[string]string {
	all := map[string]string{}
	for _, p := range parts.All {
		for _, i := range p.Images {
			if p.Own {
				all[i.Path] = "./" + i.Package
			}
		}
	}
	return all
}

// Build compiles the controllers of a checkout for some architectures and writes
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
	return build(ctx, checkout, ours(), v, filepath.Join(out, "controller-"+v.Version+".oci.tar"), archs)
}

// build compiles the binaries into a temporary folder, and writes the archive.
func build(ctx context.Context, checkout string, programs map[string]string, v setup.Versions, path string, archs []string) (string, error) {
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
		var files []archive.File
		for _, inside := range slices.Sorted(maps.Keys(programs)) {
			binary := filepath.Join(dir, filepath.Base(inside)+"-"+arch)
			if err := compile(ctx, checkout, programs[inside], arch, v.Version, binary); err != nil {
				return "", err
			}
			files = append(files, archive.File{Path: inside, Mode: 0o755, Source: binary})
		}
		i.Platforms = append(i.Platforms, archive.Platform{OS: "linux", Arch: arch, Layers: []*archive.Layer{archive.Nonroot(), archive.Files(files...)}})
	}
	return path, archive.Write(path, i)
}

// compile compiles a main package of a checkout.
func compile(ctx context.Context, checkout, pkg, arch, version, binary string) error {
	c := compiler.Program{
		Dir: checkout, Packages: []string{pkg}, Ldflags: "-X main.version=" + version,
		OS: "linux", Arch: arch,
	}
	if err := c.Compile(ctx, binary); err != nil {
		return fmt.Errorf("cannot build %s for linux/%s: %w", pkg, arch, err)
	}
	return nil
}
