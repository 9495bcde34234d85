// SPDX-License-Identifier: Apache-2.0

// Package controller builds the container images of our controllers and of their agent in the pods
// of Runs: their static binaries for each architecture, the account they run as, and nothing else.
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

// An Image is one of ours.
type Image struct {
	// Name is that of its repository.
	Name string
	// title is what its label says.
	title string
	// entrypoint is the path of the program that it starts.
	entrypoint string
	reference  func(setup.Versions) string
}

var (
	// Controllers has the programs of both controllers. Earlier AppWrapper controllers have the
	// same path, which the chart's Deployment runs.
	Controllers = Image{Name: "controller", title: "MLBatch controller", entrypoint: "/manager", reference: setup.Versions.ControllerImage}
	// Agent has the program of init containers in the pods of Runs.
	Agent = Image{Name: "agent", title: "MLBatch agent in the pods of Runs", entrypoint: "/agent", reference: setup.Versions.AgentImage}
)

// All are our images.
var All = []Image{Controllers, Agent}

// Reference is that of a version.
func (i Image) Reference(v setup.Versions) string { return i.reference(v) }

// programs are the folders of main packages, by their paths in the image.
func (i Image) programs(v setup.Versions) map[string]string {
	all := map[string]string{}
	for _, p := range parts.All {
		for _, program := range p.Images {
			if p.Own && p.Reference(program, v) == i.Reference(v) {
				all[program.Path] = "./" + program.Package
			}
		}
	}
	return all
}

// Build compiles the programs of a checkout for some architectures and writes
// their image to NAME-<version>.oci.tar in the folder out.
func (i Image) Build(ctx context.Context, checkout, out string, archs ...string) (archivePath string, err error) {
	v, err := setup.Load()
	if err != nil {
		return "", err
	}
	return i.BuildAs(ctx, v, checkout, out, archs...)
}

// BuildAs is Build with a version or a registry that differs from setup/versions.yaml.
func (i Image) BuildAs(ctx context.Context, v setup.Versions, checkout, out string, archs ...string) (archivePath string, err error) {
	if err := os.MkdirAll(out, 0o755); err != nil {
		return "", fmt.Errorf("cannot create the folder for images: %w", err)
	}
	return i.build(ctx, checkout, i.programs(v), v, filepath.Join(out, i.Name+"-"+v.Version+".oci.tar"), archs)
}

// build compiles the binaries into a temporary folder, and writes the archive.
func (i Image) build(ctx context.Context, checkout string, programs map[string]string, v setup.Versions, path string, archs []string) (string, error) {
	dir, err := os.MkdirTemp("", "mlbatch-image-")
	if err != nil {
		return "", fmt.Errorf("cannot build the image %s: %w", i.Name, err)
	}
	defer os.RemoveAll(dir)
	image := archive.Image{
		Reference:  i.Reference(v),
		Entrypoint: []string{i.entrypoint},
		Labels: map[string]string{
			"org.opencontainers.image.title":    i.title,
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
		layers := []*archive.Layer{archive.Nonroot(), archive.Files(files...)}
		image.Platforms = append(image.Platforms, archive.Platform{OS: "linux", Arch: arch, Layers: layers})
	}
	return path, archive.Write(path, image)
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
