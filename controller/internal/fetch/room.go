// SPDX-License-Identifier: Apache-2.0

package fetch

import (
	"fmt"
	"io"
	"os"

	"github.com/go-git/go-billy/v5"
)

// defaultRoom is as much as of a bucket by default.
const defaultRoom = 10 << 30

// room is what may still be written to the node's disk. Nothing else limits a repository.
type room struct{ limit, left int64 }

// tooLarge says what to do if there is no room.
type tooLarge struct{ limit int64 }

func (e *tooLarge) Error() string {
	return fmt.Sprintf("the repository needs more than %s of disk to be fetched: put large files into a DataSet", bytes(e.limit))
}

func (r *room) take(size int) error {
	if r.left -= int64(size); r.left < 0 {
		return &tooLarge{r.limit}
	}
	return nil
}

// bounded is a writer that ends when the room does.
type bounded struct {
	io.Writer
	room *room
}

func (b bounded) Write(text []byte) (int, error) {
	if err := b.room.take(len(text)); err != nil {
		return 0, err
	}
	return b.Writer.Write(text)
}

// disk is a file system whose files take room.
type disk struct {
	billy.Filesystem
	room *room
}

type diskFile struct {
	billy.File
	room *room
}

func (f diskFile) Write(text []byte) (int, error) { return bounded{f.File, f.room}.Write(text) }

func (d disk) bound(file billy.File, err error) (billy.File, error) {
	if err != nil {
		return nil, err
	}
	return diskFile{file, d.room}, nil
}

// Create creates a file within the limit.
func (d disk) Create(name string) (billy.File, error) { return d.bound(d.Filesystem.Create(name)) }

// OpenFile opens a file within the limit.
func (d disk) OpenFile(name string, flag int, perm os.FileMode) (billy.File, error) {
	return d.bound(d.Filesystem.OpenFile(name, flag, perm))
}

// TempFile creates a file with a new name within the limit.
func (d disk) TempFile(dir, prefix string) (billy.File, error) {
	return d.bound(d.Filesystem.TempFile(dir, prefix))
}
