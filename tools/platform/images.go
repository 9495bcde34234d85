// SPDX-License-Identifier: Apache-2.0

// Package platform puts MLBatch onto a local cluster the way an administrator
// puts it onto theirs: images under their public names, the packaged charts,
// and values. It is what the demo and the end-to-end tests share.
package platform

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"github.com/mlbatch/mlbatch/setup"
	"github.com/mlbatch/mlbatch/tools/images/archive"
	"github.com/mlbatch/mlbatch/tools/localcluster/build"
)

// controllerProgram is the file that our controller is built into, beside the
// archive with its image.
const controllerProgram = "controller"

// Images builds the operators from their pinned modules and our controller
// from the checkout, and writes one archive of their images, under the names
// that the charts pull, to path.
func Images(ctx context.Context, cache build.Cache, progress Progress, path string) error {
	versions, err := setup.Load()
	if err != nil {
		return err
	}
	bins, err := cache.Get(ctx, progress, build.Platform(versions)...)
	if err != nil {
		return err
	}
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("cannot make the folder %s: %w", dir, err)
	}
	fmt.Fprintln(progress, "building the controller of this checkout")
	controller, err := cache.Own(ctx, progress, controllerProgram, dir)
	if err != nil {
		return err
	}
	p := versions.Platform
	return archive.Write(path,
		image(versions.ControllerImage(), controller, "/manager"),
		image(p.Kueue.Image, bins["kueue"], "/manager"),
		image(p.Coscheduler.Image, bins["scheduler"], "/bin/kube-scheduler"),
		image(p.Coscheduler.ControllerImage, bins["controller"], "/bin/controller"),
		image(p.TrainingOperator.Image, bins["training-operator.v1"], "/manager"),
		image(p.KuberayOperator.Image, bins["ray-operator"], "/manager"),
	)
}

func image(reference, binary, path string) archive.Image {
	return archive.Image{
		Reference:  reference,
		Platforms:  []archive.Platform{archive.Program(runtime.GOARCH, binary, path)},
		Entrypoint: []string{path},
	}
}
