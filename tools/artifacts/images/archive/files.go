// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"archive/tar"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
)

// A File is an entry of a layer made by Files.
type File struct {
	// Path is absolute, as seen in the container.
	Path string
	// Mode has the permissions, fs.ModeSetuid, ModeSetgid and ModeSticky. fs.ModeDir and
	// fs.ModeSymlink make it a directory or a symbolic link.
	Mode fs.FileMode
	// Source is the file on this machine with the content. Without it, the content is Text:
	// the target of a symbolic link.
	Source string
	Text   string
	// UID and GID are the owner; zero is root.
	UID, GID int
}

// Files returns a layer with the listed files. It adds missing parent directories, owned by root
// and readable by all.
func Files(files ...File) *Layer {
	return newLayer("listed files", func(tw *tar.Writer) error {
		for _, f := range withParents(files) {
			if err := f.writeTo(tw); err != nil {
				return fmt.Errorf("cannot add %s: %w", f.Path, err)
			}
		}
		return nil
	})
}

// Program returns a platform with one static binary, the account it runs as, and more files.
func Program(arch, binary, path string, more ...File) Platform {
	program := append([]File{{Path: path, Mode: 0o755, Source: binary}}, more...)
	return Platform{OS: "linux", Arch: arch, Layers: []*Layer{Nonroot(), Files(program...)}}
}

// Nonroot returns the bottom layer of images without a distribution: the accounts root and
// nonroot, a writable home and /tmp, and nsswitch.conf.
func Nonroot() *Layer {
	return Files(
		File{Path: "/etc/passwd", Mode: 0o644, Text: "root:x:0:0:root:/root:/sbin/nologin\n" +
			"nonroot:x:65532:65532:nonroot:/home/nonroot:/sbin/nologin\n"},
		File{Path: "/etc/group", Mode: 0o644, Text: "root:x:0:\nnonroot:x:65532:\n"},
		File{Path: "/etc/nsswitch.conf", Mode: 0o644, Text: "passwd: files\ngroup: files\nhosts: files dns\n"},
		File{Path: "/home/nonroot", Mode: fs.ModeDir | 0o700, UID: 65532, GID: 65532},
		File{Path: "/tmp", Mode: fs.ModeDir | fs.ModeSticky | 0o777},
	)
}

// withParents adds parents and sorts, each directory before its content.
func withParents(files []File) []File {
	all := slices.Clone(files)
	listed := map[string]bool{"/": true}
	for _, f := range files {
		listed[path.Clean(f.Path)] = true
	}
	for _, f := range files {
		for dir := path.Dir(path.Clean(f.Path)); !listed[dir]; dir = path.Dir(dir) {
			listed[dir] = true
			all = append(all, File{Path: dir, Mode: fs.ModeDir | 0o755})
		}
	}
	slices.SortFunc(all, func(a, b File) int { return strings.Compare(path.Clean(a.Path), path.Clean(b.Path)) })
	return all
}

func (f File) writeTo(tw *tar.Writer) error {
	h := &tar.Header{Name: strings.TrimPrefix(path.Clean(f.Path), "/"), Mode: unixMode(f.Mode), Uid: f.UID, Gid: f.GID, ModTime: epoch}
	switch {
	case f.Mode.IsDir():
		h.Typeflag, h.Name = tar.TypeDir, h.Name+"/"
		return tw.WriteHeader(h)
	case f.Mode&fs.ModeSymlink != 0:
		h.Typeflag, h.Linkname = tar.TypeSymlink, f.Text
		return tw.WriteHeader(h)
	case f.Source != "":
		return copyFile(tw, h, f.Source)
	}
	h.Typeflag, h.Size = tar.TypeReg, int64(len(f.Text))
	if err := tw.WriteHeader(h); err != nil {
		return err
	}
	_, err := io.WriteString(tw, f.Text)
	return err
}

// copyFile writes a file of this machine with the header.
func copyFile(tw *tar.Writer, h *tar.Header, source string) error {
	f, err := os.Open(source)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	h.Typeflag, h.Size = tar.TypeReg, info.Size()
	if err := tw.WriteHeader(h); err != nil {
		return err
	}
	_, err = io.Copy(tw, f)
	return err
}

// unixMode converts a mode for tar: Go has other values for the three special bits.
func unixMode(m fs.FileMode) int64 {
	mode := int64(m.Perm())
	for bit, unix := range map[fs.FileMode]int64{fs.ModeSetuid: 0o4000, fs.ModeSetgid: 0o2000, fs.ModeSticky: 0o1000} {
		if m&bit != 0 {
			mode |= unix
		}
	}
	return mode
}
