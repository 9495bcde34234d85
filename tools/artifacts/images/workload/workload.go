// SPDX-License-Identifier: Apache-2.0

// Package workload builds the image of test/workload for clusters that pull images. A local
// cluster builds its own.
package workload

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/mlbatch/mlbatch/tools/artifacts/compiler"
	"github.com/mlbatch/mlbatch/tools/artifacts/images/archive"
)

// Image is the reference of the image on a local cluster: the program of test/workload, which
// exits as its test says.
const Image = "images.local/mlbatch/workload:1"

const entrypoint = "/workload"

// Build compiles the program of a checkout for some architectures and writes
// their image to workload.oci.tar in the folder out.
func Build(ctx context.Context, checkout, out string, archs ...string) (archivePath string, err error) {
	if err := os.MkdirAll(out, 0o755); err != nil {
		return "", fmt.Errorf("cannot create the folder for images: %w", err)
	}
	dir, err := os.MkdirTemp("", "mlbatch-image-")
	if err != nil {
		return "", fmt.Errorf("cannot build the workload image: %w", err)
	}
	defer os.RemoveAll(dir)
	image := archive.Image{Reference: Image, Entrypoint: []string{entrypoint}}
	for _, arch := range archs {
		binary := filepath.Join(dir, "workload-"+arch)
		program := compiler.Program{Dir: checkout, Packages: []string{"./test/workload"}, OS: "linux", Arch: arch}
		if err := program.Compile(ctx, binary); err != nil {
			return "", fmt.Errorf("cannot build ./test/workload for linux/%s: %w", arch, err)
		}
		image.Platforms = append(image.Platforms, archive.Program(arch, binary, entrypoint))
	}
	path := filepath.Join(out, "workload.oci.tar")
	return path, archive.Write(path, image)
}
