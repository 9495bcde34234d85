// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"context"
	"debug/buildinfo"
	"errors"
	"fmt"
	"io"
	"runtime/debug"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/content/oci"
)

// programsOf reads the build info of the programs in an image archive. It describes what is
// released, not what should have been compiled.
func programsOf(ctx context.Context, archive, tag string) ([]*debug.BuildInfo, error) {
	images, err := oci.NewFromTar(ctx, archive)
	if err != nil {
		return nil, fmt.Errorf("cannot read the image archive %s: %w", archive, err)
	}
	root, err := images.Resolve(ctx, tag)
	if err != nil {
		return nil, fmt.Errorf("cannot find %s in the image archive %s: %w", tag, archive, err)
	}
	found, err := programsBelow(ctx, images, root)
	if err != nil {
		return nil, fmt.Errorf("cannot read the image archive %s: %w", archive, err)
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("cannot find a program in the image archive %s; remove it and run the command again", archive)
	}
	return found, nil
}

// programsBelow walks from an index to the layers of its images.
func programsBelow(ctx context.Context, images content.Fetcher, node ocispec.Descriptor) ([]*debug.BuildInfo, error) {
	if node.MediaType == ocispec.MediaTypeImageLayer {
		layer, err := images.Fetch(ctx, node)
		if err != nil {
			return nil, err
		}
		defer layer.Close()
		return programsIn(tar.NewReader(layer))
	}
	parts, err := content.Successors(ctx, images, node)
	if err != nil {
		return nil, err
	}
	var all []*debug.BuildInfo
	for _, part := range parts {
		found, err := programsBelow(ctx, images, part)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	return all, nil
}

func programsIn(layer *tar.Reader) ([]*debug.BuildInfo, error) {
	var all []*debug.BuildInfo
	for {
		file, err := layer.Next()
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, err
		}
		if file.Typeflag != tar.TypeReg || file.Mode&0o111 == 0 {
			continue
		}
		text, err := io.ReadAll(layer)
		if err != nil {
			return nil, err
		}
		info, err := buildinfo.Read(bytes.NewReader(text))
		if err != nil {
			return nil, fmt.Errorf("%s was not compiled by Go: %w", file.Name, err)
		}
		all = append(all, info)
	}
}
