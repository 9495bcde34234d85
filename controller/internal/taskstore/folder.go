// SPDX-License-Identifier: Apache-2.0

package taskstore

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/mlbatch/mlbatch/controller/internal/taskqueue"
)

// Folder is a folder of a file system that has hard links. No path leaves it, also not by symbolic
// links.
type Folder struct {
	root *os.Root
	// life and temporary name files that are being written: no other broker has the name.
	life      string
	temporary atomic.Int64
	// Relaxed leaves out what makes files durable, for tests that lose no power.
	Relaxed bool
}

// OpenFolder opens a folder that is there.
func OpenFolder(name string) (*Folder, error) {
	root, err := os.OpenRoot(name)
	if err != nil {
		return nil, fmt.Errorf("%w: cannot open the folder: %w", taskqueue.ErrHopeless, err)
	}
	f := &Folder{root: root, life: rand.Text()}
	f.sweep()
	return f, nil
}

// abandoned is how long nothing was written into the file of a broker that is dead.
const abandoned = 48 * time.Hour

// sweep removes what brokers that were killed were writing. What it cannot remove hurts nobody.
func (f *Folder) sweep() {
	left, _ := fs.ReadDir(f.root.FS(), temporaries) // There is none before the first broker.
	for _, entry := range left {
		if info, err := entry.Info(); err == nil && time.Since(info.ModTime()) > abandoned {
			_ = f.root.Remove(path.Join(temporaries, entry.Name())) // It may belong to another user.
		}
	}
}

// temporaries has files that are being written, of all queues.
const temporaries = records + "/temporary"

const (
	folders os.FileMode = 0o755
	files   os.FileMode = 0o644
)

// Create links a synced temporary file.
func (f *Folder) Create(_ context.Context, key string, body io.Reader, size int64) (bool, error) {
	if there, err := f.root.Lstat(key); err == nil && there.Mode().IsRegular() {
		return false, f.sync(path.Dir(key)) // Another broker may have made it a moment ago.
	}
	temporary, err := f.write(body, size)
	if err != nil {
		return false, err
	}
	defer func() { _ = f.root.Remove(temporary) }() // What is left of it hurts nobody.
	if err := f.makeFolder(path.Dir(key)); err != nil {
		return false, err
	}
	err = f.root.Link(temporary, key)
	if errors.Is(err, fs.ErrExist) {
		if there, err := f.root.Lstat(key); err == nil && !there.Mode().IsRegular() {
			return false, fmt.Errorf("%s is there, and is not a file: %w", key, fs.ErrInvalid)
		}
	} else if err != nil {
		return false, err
	}
	return err == nil, f.sync(path.Dir(key))
}

// write makes a temporary file.
func (f *Folder) write(body io.Reader, size int64) (string, error) {
	name := f.unused()
	if err := f.makeFolder(path.Dir(name)); err != nil {
		return "", err
	}
	file, err := f.root.OpenFile(name, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, files)
	if err != nil {
		return "", err
	}
	_ = file.Chmod(files) // Some file systems have no rights.
	written, err := io.Copy(file, body)
	if err == nil && size >= 0 && written != size {
		err = fmt.Errorf("%d bytes came of %d: %w", written, size, io.ErrUnexpectedEOF)
	}
	if err == nil && !f.Relaxed {
		err = file.Sync()
	}
	if err = errors.Join(err, file.Close()); err != nil {
		_ = f.root.Remove(name) // The first error says more.
	}
	return name, err
}

func (f *Folder) unused() string {
	return path.Join(temporaries, f.life+"-"+strconv.FormatInt(f.temporary.Add(1), 10))
}

// makeFolder makes a folder durable, and those above it.
func (f *Folder) makeFolder(name string) error {
	if name == "." {
		return nil
	}
	if info, err := f.root.Stat(name); err == nil && info.IsDir() {
		return nil
	}
	if err := f.makeFolder(path.Dir(name)); err != nil {
		return err
	}
	err := f.root.Mkdir(name, folders)
	switch {
	case err == nil:
		_ = f.root.Chmod(name, f.rights(name)) // Some file systems have no rights.
	case !errors.Is(err, fs.ErrExist):
		return err
	default:
		if info, err := f.root.Stat(name); err != nil || !info.IsDir() {
			return fmt.Errorf("%s is there, and is not a folder: %w", name, fs.ErrInvalid)
		}
	}
	return f.sync(path.Dir(name))
}

// rights of a new folder are those of the folder above it: queues of other users, and people, use
// it, too. But only its broker writes what a queue remembers.
func (f *Folder) rights(name string) os.FileMode {
	above, err := f.root.Stat(path.Dir(name))
	if err != nil || within(name, records) && name != records && name != temporaries {
		return folders
	}
	return folders | above.Mode()&(os.ModePerm|os.ModeSetgid|os.ModeSticky)
}

func (f *Folder) sync(folder string) error {
	if f.Relaxed {
		return nil
	}
	opened, err := f.root.Open(folder)
	if err != nil {
		return err
	}
	return errors.Join(opened.Sync(), opened.Close())
}

// Open reads a regular file: no other can be waited for.
func (f *Folder) Open(_ context.Context, key string) (io.ReadCloser, int64, error) {
	file, err := f.root.OpenFile(key, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, 0, err
	}
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a file: %w", key, fs.ErrNotExist)
	}
	if err != nil {
		file.Close()
		return nil, 0, err
	}
	return file, info.Size(), nil
}

// List leaves out what is not a regular file.
func (f *Folder) List(ctx context.Context, folder string, each func(key string, size int64)) error {
	err := fs.WalkDir(f.root.FS(), folder, func(key string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // It is not there, or went just now.
		}
		if errors.Is(err, fs.ErrPermission) {
			return unreadable(key, err)
		}
		if err != nil || !entry.Type().IsRegular() {
			return errors.Join(err, ctx.Err())
		}
		info, err := entry.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err == nil {
			each(key, info.Size())
		}
		return err
	})
	return err
}

// unreadable is of a folder that may have tasks. The one of the file system has none.
func unreadable(folder string, err error) error {
	if path.Base(folder) == "lost+found" {
		return fs.SkipDir
	}
	return fmt.Errorf("%w: the broker may not read the folder %s: let its user do so, who is %d: %w", taskqueue.ErrHopeless, folder, os.Geteuid(), err)
}

// Copy is another link of the file.
func (f *Folder) Copy(ctx context.Context, from, to string) error {
	if same, err := f.Same(ctx, from, to); same || err != nil {
		return err
	}
	if err := f.makeFolder(path.Dir(to)); err != nil {
		return err
	}
	temporary := f.unused()
	if err := f.root.Link(from, temporary); err != nil {
		return err
	}
	if err := f.root.Rename(temporary, to); err != nil {
		_ = f.root.Remove(temporary) // The first error says more.
		return err
	}
	return f.sync(path.Dir(to))
}

// Same is whether both are one file.
func (f *Folder) Same(_ context.Context, from, to string) (bool, error) {
	first, err := f.root.Lstat(from)
	if err != nil {
		return false, err
	}
	second, err := f.root.Lstat(to)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil && os.SameFile(first, second), err
}
