// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"archive/tar"
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"io"
	"os"
	"sync"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/mlbatch/mlbatch/tools/artifacts/atomicfile"
)

// epoch is the time of all files in an image.
var epoch = time.Unix(0, 0).UTC()

// A Layer generates the bytes of a layer: once for its digest, and once for each archive.
type Layer struct {
	title  string
	stream func(io.Writer) error

	once sync.Once
	sum  counter
	err  error
}

var _ v1.Layer = (*Layer)(nil)

// Tar returns a layer that is read from a tar file.
func Tar(path string) *Layer {
	return &Layer{title: "ready layer", stream: func(w io.Writer) error {
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		defer f.Close()
		_, err = io.Copy(w, f)
		return err
	}}
}

// WriteTar writes a layer to a file for Tar, atomically.
func WriteTar(path string, l *Layer) error {
	return atomicfile.Stream(path, 0o644, l.stream)
}

// newLayer returns a layer whose entries the function writes.
func newLayer(title string, entries func(*tar.Writer) error) *Layer {
	return &Layer{title: title, stream: func(w io.Writer) error {
		tw := tar.NewWriter(w)
		if err := entries(tw); err != nil {
			return err
		}
		return tw.Close()
	}}
}

func (l *Layer) measure() error {
	l.once.Do(func() { l.err = l.stream(l.sum.reset()) })
	return l.err
}

// Digest is the digest of the layer as it is stored.
func (l *Layer) Digest() (v1.Hash, error) {
	if err := l.measure(); err != nil {
		return v1.Hash{}, err
	}
	return l.sum.digest(), nil
}

// DiffID is the digest of the uncompressed layer, which is how it is stored.
func (l *Layer) DiffID() (v1.Hash, error) { return l.Digest() }

// Size is the number of bytes as stored.
func (l *Layer) Size() (int64, error) {
	if err := l.measure(); err != nil {
		return 0, err
	}
	return l.sum.size, nil
}

// MediaType says that the layer is not compressed.
func (l *Layer) MediaType() (types.MediaType, error) { return types.OCIUncompressedLayer, nil }

// Compressed is the layer as stored.
func (l *Layer) Compressed() (io.ReadCloser, error) { return l.Uncompressed() }

// Uncompressed streams the layer's tar.
func (l *Layer) Uncompressed() (io.ReadCloser, error) {
	r, w := io.Pipe()
	go func() { w.CloseWithError(l.stream(w)) }()
	return r, nil
}

// A counter is a writer that computes the digest and the length of its input.
type counter struct {
	hash hash.Hash
	size int64
}

func (c *counter) reset() io.Writer {
	c.hash, c.size = sha256.New(), 0
	return c
}

func (c *counter) Write(p []byte) (int, error) {
	c.size += int64(len(p))
	return c.hash.Write(p)
}

func (c *counter) digest() v1.Hash {
	return v1.Hash{Algorithm: "sha256", Hex: hex.EncodeToString(c.hash.Sum(nil))}
}
