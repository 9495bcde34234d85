// SPDX-License-Identifier: Apache-2.0

// Package archive makes container images from files, without a container engine. It writes an
// OCI image layout as a tar file that containerd (ctr images import), Podman and Docker load.
//
// The output is reproducible: entries are sorted, times are the epoch, and no data of the host
// leaks in. Layers are streamed from their source, so large images need little memory.
// They are not compressed: containerd on the same machine would only decompress them, and
// digests would depend on the version of the compressor.
package archive

import (
	"archive/tar"
	"encoding/json"
	"fmt"
	"io"

	"github.com/mlbatch/mlbatch/tools/artifacts/atomicfile"
)

// An Image is the image of one reference in an archive.
type Image struct {
	// Reference is the full name with its tag. Its first part must be a host with a dot or a
	// port: otherwise containerd treats it as a name on Docker Hub.
	Reference string
	// Platforms holds the root file systems. One makes the reference an image,
	// several make it an index of images.
	Platforms []Platform

	Entrypoint []string
	WorkingDir string
	Env        []string
	Labels     map[string]string
	// User is "uid:gid", numeric so that the kubelet can check runAsNonRoot.
	// Empty means 65532:65532.
	User string
}

// A Platform is the root file system of an image on one kind of machine.
type Platform struct {
	OS, Arch string
	// Layers are ordered from the bottom up. An archive and containerd store a shared layer
	// once.
	Layers []*Layer
}

// Write writes an archive of the images to path, atomically. It replaces an existing archive.
func Write(path string, images ...Image) error {
	l, err := newLayout(images)
	if err != nil {
		return err
	}
	if err := atomicfile.Stream(path, 0o644, l.writeTo); err != nil {
		return fmt.Errorf("cannot write image archive %s: %w", path, err)
	}
	return nil
}

// writeTo writes the layout in the order that readers need: version, indexes, blobs.
func (l *layout) writeTo(w io.Writer) error {
	tw := tar.NewWriter(w)
	if err := writeJSON(tw, "oci-layout", map[string]string{"imageLayoutVersion": "1.0.0"}); err != nil {
		return err
	}
	if err := writeJSON(tw, "index.json", l.index); err != nil {
		return err
	}
	if len(l.docker) > 0 { // with an empty list, an old Docker engine silently loads nothing
		if err := writeJSON(tw, "manifest.json", l.docker); err != nil {
			return err
		}
	}
	for _, b := range l.blobs {
		if err := b.writeTo(tw); err != nil {
			return err
		}
	}
	return tw.Close()
}

func writeJSON(tw *tar.Writer, name string, content any) error {
	data, err := json.Marshal(content)
	if err != nil {
		return err
	}
	if err := tw.WriteHeader(entry(name, int64(len(data)))); err != nil {
		return err
	}
	_, err = tw.Write(data)
	return err
}

// entry is the header of a regular file in the archive.
func entry(name string, size int64) *tar.Header {
	return &tar.Header{Typeflag: tar.TypeReg, Name: name, Size: size, Mode: 0o644, ModTime: epoch}
}
