// SPDX-License-Identifier: Apache-2.0

// Package controller builds the container image of our controller: a static binary for each
// architecture, the account it runs as, and nothing else.
package controller

import (
	"context"
	"fmt"
	"os"
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
	return build(ctx, program{checkout: checkout, pkg: "./controller"}, v, filepath.Join(out, "controller-"+v.Version+".oci.tar"), archs)
}

// build compiles the binaries into a temporary folder, and writes the archive.
func build(ctx context.Context, p program, v setup.Versions, path string, archs []string) (string, error) {
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
		binary := filepath.Join(dir, "controller-"+arch)
		if err := p.compile(ctx, arch, v.Version, binary); err != nil {
			return "", err
		}
		i.Platforms = append(i.Platforms, archive.Program(arch, binary, entrypoint))
	}
	return path, archive.Write(path, i)
}

// A program is a main package of a checkout.
type program struct{ checkout, pkg string }

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
