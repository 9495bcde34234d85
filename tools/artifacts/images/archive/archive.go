// SPDX-License-Identifier: Apache-2.0

// Package archive answers how a container image is made from files, without a
// container engine: it writes OCI image layouts as one tar file that containerd
// (ctr images import), Podman and Docker load.
//
// The same input gives the same bytes, whoever runs it and whenever: entries are
// sorted, times are the epoch, nothing of the host leaks in. Layers are streamed
// from their source, so that an image of a gigabyte needs no gigabyte of memory.
// They are not compressed: images go to a containerd on the same machine, which
// would only have to undo it, and a digest that depends on a compressor's version
// is not the same for everyone.
package archive

import (
	"archive/tar"
	"encoding/json"
	"fmt"
	"io"

	"github.com/mlbatch/mlbatch/tools/artifacts/atomicfile"
)

// An Image is what one reference in an archive stands for.
type Image struct {
	// Reference is the full name with its tag. Its first part must look like a
	// host (have a dot or a port), else containerd takes it for a name on Docker Hub.
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
	// Layers go from the bottom up. A layer that several images share is stored
	// once in an archive and once in containerd.
	Layers []*Layer
}

// Write makes an archive of the images at path. The file appears complete or not
// at all; an archive that was there before is replaced.
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

// writeTo writes the layout in the order in which readers want it: what it is,
// what is in it, the blobs.
func (l *layout) writeTo(w io.Writer) error {
	tw := tar.NewWriter(w)
	if err := writeJSON(tw, "oci-layout", map[string]string{"imageLayoutVersion": "1.0.0"}); err != nil {
		return err
	}
	if err := writeJSON(tw, "index.json", l.index); err != nil {
		return err
	}
	if len(l.docker) > 0 { // an empty list would make an old Docker engine load nothing and say nothing
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

// entry is the header of a plain file of the archive itself.
func entry(name string, size int64) *tar.Header {
	return &tar.Header{Typeflag: tar.TypeReg, Name: name, Size: size, Mode: 0o644, ModTime: epoch}
}
