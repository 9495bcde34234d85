// SPDX-License-Identifier: Apache-2.0

package build

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Binaries maps a binary's file name to its absolute path.
type Binaries map[string]string

// Get returns the binaries of comps, building what the cache lacks. It prints
// one line to progress for each component that it builds, with a running time.
func (c Cache) Get(ctx context.Context, progress io.Writer, comps ...Component) (Binaries, error) {
	if err := os.MkdirAll(c.Dir, 0o755); err != nil {
		return nil, fmt.Errorf("cannot make the build cache: %w", err)
	}
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

// Lacks reports whether Get would have to build any of comps. It does not look
// inside finished entries, which takes seconds.
func (c Cache) Lacks(comps ...Component) (bool, error) {
	for _, comp := range comps {
		key, err := c.key(comp)
		if err != nil {
			return false, err
		}
		if _, err := os.Stat(filepath.Join(c.entry(comp, key), manifestName)); err != nil {
			return true, nil
		}
	}
	return false, nil
}

func (c Cache) get(ctx context.Context, comp Component, l line) (string, error) {
	key, err := c.key(comp)
	if err != nil {
		return "", err
	}
	entry := c.entry(comp, key)
	if intact(entry) {
		return entry, nil
	}
	unlock, err := lock(entry + ".lock")
	if err != nil {
		return "", err
	}
	defer unlock()
	if intact(entry) { // another process built it while we waited
		return entry, nil
	}
	stop := l.start(ctx)
	err = c.build(ctx, comp, entry)
	stop(err)
	return entry, err
}

// build builds into a temporary folder and renames it: an entry is either
// absent or complete.
func (c Cache) build(ctx context.Context, comp Component, entry string) error {
	tmp, err := os.MkdirTemp(c.Dir, ".building-")
	if err != nil {
		return fmt.Errorf("cannot build %s: %w", comp.Name, err)
	}
	defer os.RemoveAll(tmp)
	if err := run(ctx, c.module(comp), append(append([]string{"build", "-o", tmp + "/"}, goFlags(comp)...), comp.Packages...)); err != nil {
		return fmt.Errorf("cannot build %s: %w", comp.Name, err)
	}
	if err := seal(tmp, comp.Binaries); err != nil {
		return fmt.Errorf("cannot build %s: %w", comp.Name, err)
	}
	if err := os.RemoveAll(entry); err != nil {
		return fmt.Errorf("cannot replace a broken build of %s: %w", comp.Name, err)
	}
	if err := os.Chmod(tmp, 0o755); err != nil {
		return fmt.Errorf("cannot build %s: %w", comp.Name, err)
	}
	if err := os.Rename(tmp, entry); err != nil {
		return fmt.Errorf("cannot keep the build of %s: %w", comp.Name, err)
	}
	return nil
}

func goFlags(comp Component) []string {
	flags := []string{"-trimpath", "-ldflags", strings.TrimSpace("-s -w " + comp.Ldflags)}
	if comp.Tags != "" {
		flags = append(flags, "-tags", comp.Tags)
	}
	return flags
}

func run(ctx context.Context, dir string, args []string) error {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOTOOLCHAIN=local", "GOWORK=off", "GOFLAGS=-buildvcs=false")
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	err := cmd.Run()
	if err == nil || ctx.Err() != nil {
		return ctx.Err() // what a killed compiler said helps nobody
	}
	if strings.Contains(output.String(), "no space left on device") {
		return errors.New("no space left on the disk; free some and run the command again")
	}
	return fmt.Errorf("%w\n%s", err, strings.TrimSpace(output.String()))
}

// lock serialises builds of one entry between processes.
func lock(path string) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("cannot lock the build cache: %w", err)
	}
	for {
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX)
		if !errors.Is(err, syscall.EINTR) {
			break
		}
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("cannot lock the build cache: %w", err)
	}
	return func() { f.Close() }, nil
}

// line prints the progress of one component.
type line struct {
	out  io.Writer
	text string
}

// start announces the work and repeats itself every 30 seconds until stop.
func (l line) start(ctx context.Context) (stop func(error)) {
	fmt.Fprintf(l.out, "%s: building\n", l.text)
	begin := time.Now()
	done := make(chan struct{})
	go func() {
		tick := time.NewTicker(30 * time.Second)
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case <-ctx.Done():
				return
			case <-tick.C:
				fmt.Fprintf(l.out, "%s: still building, %s\n", l.text, time.Since(begin).Round(time.Second))
			}
		}
	}()
	return func(err error) {
		close(done)
		if err == nil {
			fmt.Fprintf(l.out, "%s: built in %s\n", l.text, time.Since(begin).Round(time.Second))
		}
	}
}
