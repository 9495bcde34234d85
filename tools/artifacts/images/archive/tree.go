// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"archive/tar"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// Tree returns a layer with the content of a directory on this machine. It keeps links, owners
// and modes, sorts the names, and drops times.
func Tree(root string) *Layer {
	return newLayer("a directory tree", func(tw *tar.Writer) error {
		t := tree{root: root, tw: tw, links: map[inode]string{}}
		return filepath.WalkDir(root, t.visit)
	})
}

// inode identifies a file that may have several names.
type inode struct{ device, number uint64 }

type tree struct {
	root  string
	tw    *tar.Writer
	links map[inode]string
}

func (t *tree) visit(path string, d fs.DirEntry, err error) error {
	if err != nil || path == t.root {
		return err
	}
	if err := t.add(path, d); err != nil {
		return fmt.Errorf("cannot add %s: %w", path, err)
	}
	return nil
}

func (t *tree) add(path string, d fs.DirEntry) error {
	info, err := d.Info()
	if err != nil {
		return err
	}
	h, err := t.header(path, info)
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() || t.linked(h, info) {
		return t.tw.WriteHeader(h)
	}
	return copyFile(t.tw, h, path)
}

func (t *tree) header(path string, info fs.FileInfo) (*tar.Header, error) {
	name, err := filepath.Rel(t.root, path)
	if err != nil {
		return nil, err
	}
	var target string
	if info.Mode()&fs.ModeSymlink != 0 {
		if target, err = os.Readlink(path); err != nil {
			return nil, err
		}
	}
	h, err := tar.FileInfoHeader(info, target)
	if err != nil {
		return nil, err
	}
	h.Name = name
	if info.IsDir() {
		h.Name += "/"
	}
	// Account names and times depend on the machine.
	h.Uname, h.Gname, h.ModTime = "", "", epoch
	return h, nil
}

// linked turns all but the first name of a file into hard links.
func (t *tree) linked(h *tar.Header, info fs.FileInfo) bool {
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok || s.Nlink < 2 {
		return false
	}
	id := inode{device: s.Dev, number: s.Ino}
	first, seen := t.links[id]
	if !seen {
		t.links[id] = h.Name
		return false
	}
	h.Typeflag, h.Linkname, h.Size = tar.TypeLink, first, 0
	return true
}
