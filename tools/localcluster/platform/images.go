// SPDX-License-Identifier: Apache-2.0

// Package platform installs MLBatch on a local cluster the way an administrator does: with
// images under their public names, the packaged charts, and values. The demo and the
// end-to-end tests share it.
package platform

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"

	"github.com/mlbatch/mlbatch/setup"
	"github.com/mlbatch/mlbatch/tools/artifacts/components"
	"github.com/mlbatch/mlbatch/tools/artifacts/images/archive"
	"github.com/mlbatch/mlbatch/tools/artifacts/images/ray"
	"github.com/mlbatch/mlbatch/tools/artifacts/images/s3"
	"github.com/mlbatch/mlbatch/tools/localcluster/plan"
	"github.com/mlbatch/mlbatch/tools/mlbatch/parts"
)

// programs builds the operators from their pinned modules, and our controllers from
// the checkout. It returns each by the image that the charts pull.
func (s Site) programs(ctx context.Context) (map[string]plan.Image, error) {
	versions, err := s.Cluster.Versions()
	if err != nil {
		return nil, err
	}
	bins, err := s.cache().Get(ctx, s.Progress, s.operators(versions)...)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(s.dir(), 0o755); err != nil {
		return nil, fmt.Errorf("cannot create the folder %s: %w", s.dir(), err)
	}
	fmt.Fprintln(s.Progress, "building the controllers of this checkout")
	ours := components.Binaries{}
	for _, p := range own() {
		for _, i := range p.Images {
			if ours[i.Program()], err = s.cache().Own(ctx, s.Progress, i.Package, s.dir()); err != nil {
				return nil, err
			}
		}
	}
	return s.byImage(versions, ours, bins), nil
}

// own are the parts that are built from the checkout.
func own() []parts.Part {
	return slices.DeleteFunc(slices.Clone(parts.All), func(p parts.Part) bool { return !p.Own })
}

// byImage maps the image of each wanted part to its programs. Our image has all of ours, as when it
// is released. One of ours may have the name of another's.
func (s Site) byImage(versions setup.Versions, ours, theirs components.Binaries) map[string]plan.Image {
	all := map[string]plan.Image{}
	for _, p := range parts.All {
		if p.Optional && !p.Own && !s.EveryPart {
			continue
		}
		bins := theirs
		if p.Own {
			bins = ours
		}
		for _, i := range p.Images {
			if i.Package == "" {
				continue
			}
			reference, file := p.Reference(i, versions), bins[i.Program()]
			image, another := all[reference]
			if !another {
				image = plan.Image{File: file, Path: i.Path, More: map[string]string{}}
			} else {
				image.More[i.Path] = file
			}
			all[reference] = image
		}
	}
	return all
}

// Ray builds the archive of the images that stand in for Ray.
func (s Site) Ray(ctx context.Context) (archivePath string, err error) {
	return ray.Build(ctx, s.cache(), s.Progress, filepath.Join(s.Checkout, "dist"))
}

// S3 builds the archive of the image of an S3 server.
func (s Site) S3(ctx context.Context) (archivePath string, err error) {
	return s3.Build(ctx, s.cache(), s.Progress, filepath.Join(s.Checkout, "dist"))
}

// operators returns the components of the platform.
func (s Site) operators(versions setup.Versions) []components.Component {
	all := components.Platform(versions)
	if s.EveryPart {
		all = append(all, components.Optional(versions)...)
	}
	return all
}

// writeImages writes one archive of images with their programs.
func writeImages(path string, programs map[string]plan.Image) error {
	var images []archive.Image
	for _, reference := range slices.Sorted(maps.Keys(programs)) {
		program := programs[reference]
		var more []archive.File
		for _, path := range slices.Sorted(maps.Keys(program.More)) {
			more = append(more, archive.File{Path: path, Mode: 0o755, Source: program.More[path]})
		}
		images = append(images, archive.Image{
			Reference:  reference,
			Platforms:  []archive.Platform{archive.Program(runtime.GOARCH, program.File, program.Path, more...)},
			Entrypoint: []string{program.Path},
		})
	}
	return archive.Write(path, images...)
}
