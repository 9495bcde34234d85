// SPDX-License-Identifier: Apache-2.0

// Package torch makes the training image of the local cluster: PyTorch for CPUs,
// out of Debian's packages, without a container engine and without installing
// anything on this machine.
//
//	Debian packages → a root folder → trimmed, mended, compiled → one layer (cached)
//	the layer + the sample's files → one archive with two images (cached)
//
// The first half takes a minute or two and needs the network; it is done once for a
// recipe. The second half takes seconds and follows the sample.
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

	pytorchdigits "github.com/mlbatch/mlbatch/samples/pytorch-digits"
	"github.com/mlbatch/mlbatch/tools/images/archive"
)

// References of the two images in the archive.
const (
	// Reference is PyTorch and nothing else.
	Reference = "images.local/mlbatch/torch:1"
	// DigitsReference is the same with samples/pytorch-digits in /workspace.
	DigitsReference = "images.local/mlbatch/pytorch-digits:1"
)

// DefaultDir is mlbatch/images in the user's cache folder.
func DefaultDir() (string, error) {
	base, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("cannot find a cache folder (set HOME or XDG_CACHE_HOME): %w", err)
	}
	return filepath.Join(base, "mlbatch", "images"), nil
}

// Build returns an OCI archive with both images, making what the cache lacks. It
// prints a line to progress for each step that takes time.
func Build(ctx context.Context, cacheDir string, progress io.Writer) (archivePath string, err error) {
	entry := filepath.Join(cacheDir, "torch-"+recipeKey())
	if err := os.MkdirAll(entry, 0o755); err != nil {
		return "", fmt.Errorf("cannot make the image cache: %w", err)
	}
	unlock, err := lock(entry + ".lock")
	if err != nil {
		return "", err
	}
	defer unlock()
	sample, err := sampleKey()
	if err != nil {
		return "", err
	}
	path := filepath.Join(entry, sample+".oci.tar")
	if intact(path) {
		return path, nil
	}
	layer, err := layer(ctx, entry, progress)
	if err != nil {
		return "", err
	}
	fmt.Fprintln(progress, "training image: writing the archive")
	return path, writeArchive(path, layer)
}

// writeArchive replaces the archives of former versions of the sample.
func writeArchive(path string, layer *archive.Layer) error {
	old, err := filepath.Glob(filepath.Join(filepath.Dir(path), "*.oci.tar*"))
	if err != nil {
		return err
	}
	for _, o := range old {
		if err := os.Remove(o); err != nil {
			return fmt.Errorf("cannot remove a former training image: %w", err)
		}
	}
	workspace, err := sampleFiles()
	if err != nil {
		return err
	}
	base := []*archive.Layer{layer, archive.Nonroot()}
	if err := archive.Write(path,
		image(Reference, base...),
		image(DigitsReference, append(base, archive.Files(workspace...))...)); err != nil {
		return err
	}
	return seal(path)
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

func sampleKey() (string, error) {
	files, err := sampleFiles()
	if err != nil {
		return "", fmt.Errorf("cannot read the training sample: %w", err)
	}
	h := sha256.New()
	for _, f := range files {
		fmt.Fprintln(h, f.Path, len(f.Text), f.Text)
	}
	return "digits-" + hex.EncodeToString(h.Sum(nil))[:16], nil
}
