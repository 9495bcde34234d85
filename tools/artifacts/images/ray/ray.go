// SPDX-License-Identifier: Apache-2.0

// Package ray builds images for end-to-end tests: they stand in for Ray, and for the kubectl
// that the training operator gives to launchers of MPIJobs.
package ray

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"

	"github.com/mlbatch/mlbatch/tools/artifacts/components"
	"github.com/mlbatch/mlbatch/tools/artifacts/images/archive"
)

// Image is the image of tools/artifacts/components/ray.
const Image = "images.local/mlbatch/ray:1"

// kubectlDelivery is the image that the training operator uses. The launchers of our tests do
// not use the kubectl that it delivers.
const kubectlDelivery = "ghcr.io/kubeflow/training-v1/kubectl-delivery:latest"

// Component builds the program of Image.
var Component = components.Component{Name: "ray", Folder: "ray", Packages: []string{"."}, Binaries: []string{"ray"}}

// Build writes both images to ray.oci.tar in the folder out.
func Build(ctx context.Context, cache components.Cache, progress io.Writer, out string) (archivePath string, err error) {
	bins, err := cache.Get(ctx, progress, Component)
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(out, 0o755); err != nil {
		return "", fmt.Errorf("cannot create the folder for images: %w", err)
	}
	const program = "/usr/bin/ray"
	shell := archive.File{Path: "/bin/bash", Mode: os.ModeSymlink | 0o777, Text: program}
	image := archive.Image{
		Reference:  Image,
		Platforms:  []archive.Platform{archive.Program(runtime.GOARCH, bins["ray"], program, shell)},
		Entrypoint: []string{program},
		Env:        []string{"PATH=/usr/bin:/bin"},
	}
	delivery := image
	delivery.Reference, delivery.Entrypoint = kubectlDelivery, []string{"/bin/bash", "-c", "--", "true"}
	path := filepath.Join(out, "ray.oci.tar")
	return path, archive.Write(path, image, delivery)
}
