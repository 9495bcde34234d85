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

// unpack writes what an archive has below its base to a path, or into it under its name if it is a folder. It leaves
// out symbolic links, which could lead elsewhere, and devices.
func unpack(in io.Reader, base, own, local string) (left int, err error) {
	folder, name := filepath.Dir(local), filepath.Base(local)
	if info, err := os.Stat(local); err == nil && info.IsDir() {
		folder, name = local, own
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
	within, err := below(header.Name, base)
	if err != nil {
		return false, err
	}
	if header.Typeflag == tar.TypeLink {
		var first string
		if first, err = below(header.Linkname, base); err != nil {
			return false, err
		}
		written, err = again(root, filepath.Join(name, first), filepath.Join(name, within), header)
	} else {
		written, err = write(root, filepath.Join(name, within), header, archive)
	}
	if err != nil {
		return false, fmt.Errorf("cannot write to this machine: %w", err)
	}
	return written, nil
}

// below is a name of the archive without its base.
func below(sent, base string) (string, error) {
	name := path.Clean(sent)
	within, is := strings.CutPrefix(name, base)
	is = is && (within == "" || within[0] == '/')
	if base == "." {
		within, is = name, filepath.IsLocal(name)
	}
	if !is {
		return "", fmt.Errorf("the container sends %q, which nobody has asked for", sent)
	}
	return filepath.FromSlash(within), nil
}

// again writes a file under another of its names. The first one is left out if it is no file.
func again(root *os.Root, first, name string, header *tar.Header) (bool, error) {
	content, err := root.Open(first)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer func() { _ = content.Close() }()
	header.Typeflag = tar.TypeReg
	return write(root, name, header, content)
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
