// SPDX-License-Identifier: Apache-2.0

package fetch

import (
	"fmt"
	"io"
	"os"
	"path"

	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/storage/filesystem"
)

// writer writes a tree of git. A root keeps what is written in its folder, whatever links the tree has.
type writer struct {
	storage *filesystem.Storage
	root    *os.Root
	room    *room
}

func (w *writer) tree(tree *object.Tree, folder string) error {
	for _, entry := range tree.Entries {
		if err := w.entry(entry, path.Join(folder, entry.Name)); err != nil {
			return fmt.Errorf("cannot write %s: %w", path.Join(folder, entry.Name), err)
		}
	}
	return nil
}

func (w *writer) entry(entry object.TreeEntry, name string) error {
	switch entry.Mode {
	case filemode.Dir:
		if err := w.folder(name); err != nil {
			return err
		}
		tree, err := object.GetTree(w.storage, entry.Hash)
		if err != nil {
			return err
		}
		return w.tree(tree, name)
	case filemode.Submodule: // as git clone has it
		return w.folder(name)
	}
	blob, err := object.GetBlob(w.storage, entry.Hash)
	if err != nil {
		return err
	}
	text, err := blob.Reader()
	if err != nil {
		return err
	}
	defer text.Close()
	if entry.Mode == filemode.Symlink {
		target, err := io.ReadAll(text)
		if err != nil {
			return err
		}
		if err := w.root.RemoveAll(name); err != nil {
			return err
		}
		return w.root.Symlink(string(target), name)
	}
	return w.file(text, name, entry.Mode)
}

// folder makes a folder, unless there is one.
func (w *writer) folder(name string) error {
	is, err := w.root.Lstat(name)
	if err == nil && is.IsDir() {
		return nil
	}
	if err := w.root.RemoveAll(name); err != nil {
		return err
	}
	return w.root.Mkdir(name, executable)
}

func (w *writer) file(text io.Reader, name string, mode filemode.FileMode) error {
	bits := executable
	if mode != filemode.Executable {
		bits &^= 0o111
	}
	if err := w.root.RemoveAll(name); err != nil {
		return err
	}
	file, err := w.root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, bits)
	if err != nil {
		return err
	}
	if _, err := io.Copy(bounded{file, w.room}, text); err != nil {
		file.Close()
		return err
	}
	return file.Close()
}
