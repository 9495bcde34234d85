// SPDX-License-Identifier: Apache-2.0

package podcopy

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// baseOf is the last part of a path, also of a folder that is named by dots.
func baseOf(local string) string {
	if whole, err := filepath.Abs(local); err == nil {
		local = whole
	}
	return filepath.Base(local)
}

// pack writes a file, or a folder with all that is in it, under another name.
func pack(local, name string, out io.Writer) error {
	archive := tar.NewWriter(out)
	err := filepath.WalkDir(local, func(file string, entry fs.DirEntry, err error) error {
		if err != nil {
			return fmt.Errorf("cannot read what is to be copied: %w", err)
		}
		within, err := filepath.Rel(local, file)
		if err != nil {
			return err
		}
		return add(archive, file, path.Join(name, filepath.ToSlash(within)), entry)
	})
	if err != nil {
		return err
	}
	return archive.Close()
}

func add(archive *tar.Writer, file, name string, entry fs.DirEntry) error {
	info, err := entry.Info()
	if err != nil {
		return err
	}
	target := ""
	switch {
	case entry.Type()&fs.ModeSymlink != 0:
		if target, err = os.Readlink(file); err != nil {
			return err
		}
	case !entry.IsDir() && !entry.Type().IsRegular():
		return fmt.Errorf("%s is a device or a socket, and only files, folders and links are copied: remove it", file)
	}
	header, err := tar.FileInfoHeader(info, target)
	if err != nil {
		return err
	}
	header.Name, header.Uid, header.Gid, header.Uname, header.Gname = name, 0, 0, "", ""
	if err := archive.WriteHeader(header); err != nil || !entry.Type().IsRegular() {
		return err
	}
	content, err := os.Open(file)
	if err != nil {
		return err
	}
	defer func() { _ = content.Close() }()
	_, err = io.Copy(archive, content)
	return err
}

// unpack writes what an archive has below its base to a path, or into it if it is a folder. It leaves out links, which
// could lead elsewhere, and devices.
func unpack(in io.Reader, base, local string) (left int, err error) {
	folder, name := filepath.Dir(local), filepath.Base(local)
	if info, err := os.Stat(local); err == nil && info.IsDir() {
		folder, name = local, base
	}
	root, err := os.OpenRoot(folder)
	if err != nil {
		return 0, fmt.Errorf("cannot write to this machine: %w", err)
	}
	defer func() { _ = root.Close() }()
	for archive := tar.NewReader(in); ; {
		written, err := next(archive, root, base, name)
		if errors.Is(err, io.EOF) {
			return left, nil
		}
		if err != nil {
			return left, err
		}
		if !written {
			left++
		}
	}
}

// next writes one file or folder, or returns io.EOF.
func next(archive *tar.Reader, root *os.Root, base, name string) (written bool, err error) {
	header, err := archive.Next()
	if errors.Is(err, io.EOF) {
		return false, io.EOF
	}
	if err != nil {
		return false, fmt.Errorf("cannot read what comes out of the container: %w", err)
	}
	within, below := strings.CutPrefix(path.Clean(header.Name), base)
	if !below || within != "" && within[0] != '/' {
		return false, fmt.Errorf("the container sends %q, which nobody has asked for", header.Name)
	}
	written, err = write(root, filepath.Join(name, filepath.FromSlash(within)), header, archive)
	if err != nil {
		return false, fmt.Errorf("cannot write to this machine: %w", err)
	}
	return written, nil
}

// write writes a file or a folder. The root refuses names that lead out of it.
func write(root *os.Root, name string, header *tar.Header, content io.Reader) (bool, error) {
	mode := header.FileInfo().Mode().Perm()
	switch header.Typeflag {
	case tar.TypeDir:
		return true, root.MkdirAll(name, mode|0o700)
	case tar.TypeReg:
	default:
		return false, nil
	}
	if err := root.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return false, err
	}
	file, err := root.OpenFile(name, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, mode|0o600)
	if err != nil {
		return false, err
	}
	_, err = io.Copy(file, content)
	return true, errors.Join(err, file.Close())
}
