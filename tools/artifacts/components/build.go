// SPDX-License-Identifier: Apache-2.0

package components

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/mlbatch/mlbatch/tools/artifacts/compiler"
	"github.com/mlbatch/mlbatch/tools/artifacts/filecache"
)

// Binaries maps a binary's file name to its absolute path.
type Binaries map[string]string

// Get returns the binaries of comps, and builds those that the cache lacks. It prints a line
// to progress for each component that it builds.
func (c Cache) Get(ctx context.Context, progress io.Writer, comps ...Component) (Binaries, error) {
	bins := Binaries{}
	for i, comp := range comps {
		entry, err := c.get(ctx, comp, line{progress, fmt.Sprintf("[%d/%d] %s", i+1, len(comps), comp.Name)})
		if err != nil {
			return nil, err
		}
		for _, b := range comp.Binaries {
			bins[b] = filepath.Join(entry, b)
		}
	}
	return bins, nil
}

// Lacks reports whether Get would have to build any of comps. It does not verify finished
// entries, which takes seconds.
func (c Cache) Lacks(comps ...Component) (bool, error) {
	for _, comp := range comps {
		entry, err := c.entry(comp)
		if err != nil {
			return false, err
		}
		if !filecache.Has(entry) {
			return true, nil
		}
	}
	return false, nil
}

func (c Cache) get(ctx context.Context, comp Component, l line) (string, error) {
	path, err := c.entry(comp)
	if err != nil {
		return "", err
	}
	entry := filecache.Entry{Path: path, Title: comp.Name, Fill: func(dir string) error {
		stop := l.start(ctx)
		err := c.build(ctx, comp, dir)
		stop(err)
		return err
	}}
	return path, entry.Get(ctx, l.out)
}

// build compiles a component into a folder, and checks that all its binaries exist.
func (c Cache) build(ctx context.Context, comp Component, dir string) error {
	if err := c.program(comp).Compile(ctx, dir+"/"); err != nil {
		return fmt.Errorf("cannot build %s: %w", comp.Name, err)
	}
	for _, b := range comp.Binaries {
		if _, err := os.Stat(filepath.Join(dir, b)); err != nil {
			return fmt.Errorf("cannot find a binary of %s: %w", comp.Name, err)
		}
	}
	return nil
}

func (c Cache) program(comp Component) compiler.Program {
	return compiler.Program{Dir: c.module(comp), Packages: comp.Packages, Tags: comp.Tags, Ldflags: comp.Ldflags}
}
