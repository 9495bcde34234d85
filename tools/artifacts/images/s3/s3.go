// SPDX-License-Identifier: Apache-2.0

// Package s3 builds the image of an S3 server for end-to-end tests: versitygw, which keeps objects
// as files and honours If-None-Match.
package s3

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

// Image is the image of tools/artifacts/components/s3.
const Image = "images.local/mlbatch/s3:1"

// Program is the server's file name.
const Program = "versitygw"

// Component builds the server.
var Component = components.Component{
	Name: "s3", Folder: "s3", Packages: []string{"github.com/versity/versitygw/cmd/versitygw"}, Binaries: []string{Program},
}

// Build writes the image to s3.oci.tar in the folder out.
func Build(ctx context.Context, cache components.Cache, progress io.Writer, out string) (archivePath string, err error) {
	bins, err := cache.Get(ctx, progress, Component)
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(out, 0o755); err != nil {
		return "", fmt.Errorf("cannot create the folder for images: %w", err)
	}
	path := filepath.Join(out, "s3.oci.tar")
	return path, archive.Write(path, archive.Image{
		Reference:  Image,
		Platforms:  []archive.Platform{archive.Program(runtime.GOARCH, bins[Program], "/"+Program)},
		Entrypoint: []string{"/" + Program},
	})
}
