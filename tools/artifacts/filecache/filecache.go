// SPDX-License-Identifier: Apache-2.0

// Package filecache keeps folders that take long to build. It knows whether a folder is
// complete and unchanged, and lets one process at a time build it. It does not know the
// content, and never removes an entry that is not asked for.
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

// An Entry is a folder in a cache that all processes share.
type Entry struct {
	// Path is the folder. Path.lock and, during a build, Path.building are beside it.
	Path string
	// Title is its name in messages.
	Title string
	// Fill builds the content in an empty folder, which is then renamed to Path.
	Fill func(dir string) error
}

// Get builds the entry if it does not exist. If another process is building it, Get prints
// that and waits. A folder at Path is always complete.
func (e Entry) Get(ctx context.Context, progress io.Writer) error {
	if intact(e.Path) {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(e.Path), 0o755); err != nil {
		return e.cannot("create the cache for", err)
	}
	// The lock file stays: other processes may wait for it.
	unlock, err := filelock.Lock(ctx, e.Path+".lock", func(holder string) {
		fmt.Fprintf(progress, "waiting for %s, which is building %s\n", holder, e.Title)
	})
	if err != nil {
		return e.cannot("lock", err)
	}
	defer unlock()
	if intact(e.Path) { // another process built it meanwhile
		return nil
	}
	return e.make()
}

// make builds the entry in a folder with a fixed name, so that it can remove what a killed
// process left there.
func (e Entry) make() error {
	building := e.Path + ".building"
	if err := Sweep(building); err != nil {
		return e.cannot("remove an unfinished build of", err)
	}
	if err := os.Mkdir(building, 0o755); err != nil {
		return e.cannot("create a folder for", err)
	}
	defer os.RemoveAll(building) // does nothing once the folder is renamed
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

// sweepTimeout is how long children of a killed process may take to exit.
const sweepTimeout = 30 * time.Second

// Sweep removes a folder although exiting processes may still write to it. It retries for
// 30s, and then returns the error.
func Sweep(dir string) error {
	for began := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		err := os.RemoveAll(dir)
		if !errors.Is(err, unix.ENOTEMPTY) || time.Since(began) > sweepTimeout {
			return err
		}
	}
}
