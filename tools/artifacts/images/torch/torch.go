// SPDX-License-Identifier: Apache-2.0

// Package torch builds the training image of the local cluster: PyTorch for CPUs, from Debian
// packages. It needs no container engine, and installs nothing on this machine.
//
//	Debian packages → a root folder → trimmed, mended, compiled → one layer (cached)
//	the layer + the sample's files → one archive with two images (cached)
//
// The first step takes a minute or two and needs the network; it runs once for a recipe. The
// second step takes seconds, and runs when the sample changes.
package torch

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"strings"

	pytorchdigits "github.com/mlbatch/mlbatch/samples/pytorch-digits"
	"github.com/mlbatch/mlbatch/tools/artifacts/filecache"
	"github.com/mlbatch/mlbatch/tools/artifacts/images/archive"
)

// References of the two images in the archive.
const (
	// torchReference is the image with only PyTorch.
	torchReference = "images.local/mlbatch/torch:1"
	// digitsReference is the image with PyTorch, and samples/pytorch-digits in /workspace.
	digitsReference = "images.local/mlbatch/pytorch-digits:1"
)

// DefaultDir is mlbatch/images in the user's cache folder.
func DefaultDir() (string, error) {
	dir, err := filecache.UserDir()
	return filepath.Join(dir, "images"), err
}

// archiveFile is the archive in its entry of the cache.
const archiveFile = "images.oci.tar"

// Build returns an OCI archive with both images, and builds what the cache lacks. It prints a
// line to progress for each step that takes time.
func Build(ctx context.Context, cacheDir string, progress io.Writer) (archivePath string, err error) {
	key, err := archiveKey()
	if err != nil {
		return "", err
	}
	entry := filecache.Entry{Path: filepath.Join(cacheDir, archivePrefix+key), Title: "the archive of the training image", Fill: func(dir string) error {
		layer, err := layer(ctx, cacheDir, progress)
		if err != nil {
			return err
		}
		if err := removeFormer(cacheDir); err != nil {
			return err
		}
		fmt.Fprintln(progress, "training image: writing the archive")
		return writeArchive(filepath.Join(dir, archiveFile), layer)
	}}
	return filepath.Join(entry.Path, archiveFile), entry.Get(ctx, progress)
}

// Names of archives in the cache are this prefix and a hash of the content.
const archivePrefix = "pytorch-digits-"

// removeFormer removes the archives of former versions of the sample, which are large. Locks,
// and archives that other processes are building, have longer names.
func removeFormer(cacheDir string) error {
	former, err := filepath.Glob(filepath.Join(cacheDir, archivePrefix+strings.Repeat("[0-9a-f]", keyLength)))
	if err != nil {
		return err
	}
	for _, f := range former {
		if err := os.RemoveAll(f); err != nil {
			return fmt.Errorf("cannot remove a former training image: %w", err)
		}
	}
	return nil
}

func writeArchive(path string, layer *archive.Layer) error {
	workspace, err := sampleFiles()
	if err != nil {
		return err
	}
	base := []*archive.Layer{layer, archive.Nonroot()}
	return archive.Write(path,
		image(torchReference, base...),
		image(digitsReference, append(base, archive.Files(workspace...))...))
}

func image(reference string, layers ...*archive.Layer) archive.Image {
	return archive.Image{
		Reference:  reference,
		Platforms:  []archive.Platform{{OS: "linux", Arch: runtime.GOARCH, Layers: layers}},
		WorkingDir: "/tmp",
		// Debian's Python takes its text encoding from the locale.
		Env: []string{"LANG=C.UTF-8"},
	}
}

// sampleFiles are the files of the sample as they lie in the image.
func sampleFiles() ([]archive.File, error) {
	var files []archive.File
	err := fs.WalkDir(pytorchdigits.Workspace, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := pytorchdigits.Workspace.ReadFile(name)
		files = append(files, archive.File{Path: path.Join("/workspace", name), Mode: 0o644, Text: string(data)})
		return err
	})
	return files, err
}

// keyLength is the length of a hash in a name of the cache.
const keyLength = 16

// archiveKey returns a hash of the archive's inputs: the layer's recipe and the files of the
// sample.
func archiveKey() (string, error) {
	files, err := sampleFiles()
	if err != nil {
		return "", fmt.Errorf("cannot read the training sample: %w", err)
	}
	h := sha256.New()
	fmt.Fprintln(h, recipeKey())
	for _, f := range files {
		fmt.Fprintln(h, f.Path, len(f.Text), f.Text)
	}
	return hex.EncodeToString(h.Sum(nil))[:keyLength], nil
}
