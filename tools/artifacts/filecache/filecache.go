// SPDX-License-Identifier: Apache-2.0

// Package filecache keeps what takes long to make. It answers: is this folder
// finished and unharmed, and whose turn is it to make it? It does not know what
// is in the folders, and never removes one that nobody asks for.
package filecache

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/mlbatch/mlbatch/tools/artifacts/filelock"
)

// An Entry is a folder of a cache. All processes that ask for it share it.
type Entry struct {
	// Path is the folder. Path.lock and, for a while, Path.building lie beside it.
	Path string
	// Title is what messages call it.
	Title string
	// Fill makes the content in an empty folder, which is renamed to Path later.
	Fill func(dir string) error
}

// Get makes the entry unless it is there. If another process makes it, Get says
// so and waits. A folder at Path is complete whatever happens.
func (e Entry) Get(ctx context.Context, progress io.Writer) error {
	if intact(e.Path) {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(e.Path), 0o755); err != nil {
		return e.cannot("make the cache for", err)
	}
	// The lock file stays: other processes may wait for it.
	unlock, err := filelock.Lock(ctx, e.Path+".lock", func(holder string) {
		fmt.Fprintf(progress, "waiting for %s, which is building %s\n", holder, e.Title)
	})
	if err != nil {
		return e.cannot("lock", err)
	}
	defer unlock()
	if intact(e.Path) { // another process made it while we waited
		return nil
	}
	return e.make()
}

// make fills a folder whose name is fixed, so that it finds what a killed
// process has left there.
func (e Entry) make() error {
	building := e.Path + ".building"
	if err := Sweep(building); err != nil {
		return e.cannot("clear what is left of an earlier attempt at", err)
	}
	if err := os.Mkdir(building, 0o755); err != nil {
		return e.cannot("make a folder for", err)
	}
	defer os.RemoveAll(building) // fails, as it should, once the folder has moved
	if err := e.Fill(building); err != nil {
		return err
	}
	if err := seal(building); err != nil {
		return e.cannot("seal", err)
	}
	if err := os.RemoveAll(e.Path); err != nil {
		return e.cannot("replace a broken copy of", err)
	}
	if err := os.Rename(building, e.Path); err != nil {
		return e.cannot("keep", err)
	}
	return nil
}

func (e Entry) cannot(what string, err error) error {
	return fmt.Errorf("cannot %s %s: %w", what, e.Title, err)
}

// leaving is how long programs of a process that was killed may take to end.
const leaving = 30 * time.Second

// Sweep removes a folder into which somebody may still write who is about to end. It
// tries for 30 s, and then returns what was in the way.
func Sweep(dir string) error {
	for began := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		err := os.RemoveAll(dir)
		if !errors.Is(err, unix.ENOTEMPTY) || time.Since(began) > leaving {
			return err
		}
	}
}
