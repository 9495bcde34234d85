// SPDX-License-Identifier: Apache-2.0

// Package atomicfile replaces files: a reader sees all of the old content or all of
// the new content, never a part. It does not sync to the disk, so a power cut may
// lose the new content.
package atomicfile

import (
	"bufio"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// Write stores data in the file at path. An existing file is replaced.
func Write(path string, mode fs.FileMode, data []byte) error {
	return Stream(path, mode, func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
}

// Stream is Write for content that is too large for memory. If write fails, the
// existing file stays as it is.
func Stream(path string, mode fs.FileMode, write func(io.Writer) error) error {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*") // same file system: it can be renamed
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // does nothing once the file is renamed
	if err := fill(f, mode, write); err != nil {
		f.Close()
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

func fill(f *os.File, mode fs.FileMode, write func(io.Writer) error) error {
	b := bufio.NewWriterSize(f, 1<<20)
	if err := write(b); err != nil {
		return err
	}
	if err := b.Flush(); err != nil {
		return err
	}
	return f.Chmod(mode)
}
