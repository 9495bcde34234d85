// SPDX-License-Identifier: Apache-2.0

package filecache

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// newEntry returns an entry with a program and its library.
func newEntry(t *testing.T) Entry {
	t.Helper()
	return Entry{
		Path: filepath.Join(t.TempDir(), "cache", "tool-1"), Title: "the tool",
		Fill: func(dir string) error {
			write(t, filepath.Join(dir, "tool"), "a program")
			write(t, filepath.Join(dir, "lib", "so.1"), "a library")
			return os.Symlink("so.1", filepath.Join(dir, "lib", "so"))
		},
	}
}

func TestAFinishedEntryIsUsedAgain(t *testing.T) {
	e := newEntry(t)
	if Has(e.Path) {
		t.Error("an empty cache has it")
	}
	must(t, e.Get(t.Context(), io.Discard))
	if !Has(e.Path) {
		t.Error("the cache lacks what was made")
	}
	e.Fill = func(string) error { return errors.New("made again") }
	must(t, e.Get(t.Context(), io.Discard))
	if diff := cmp.Diff([]string{"tool-1", "tool-1.lock"}, names(t, filepath.Dir(e.Path))); diff != "" {
		t.Error(diff)
	}
}

func TestABrokenEntryIsRebuilt(t *testing.T) {
	for name, spoil := range map[string]func(*testing.T, string){
		"a truncated file":              func(t *testing.T, dir string) { must(t, os.Truncate(filepath.Join(dir, "tool"), 3)) },
		"a file with one altered byte":  func(t *testing.T, dir string) { write(t, filepath.Join(dir, "tool"), "A program") },
		"a missing file":                func(t *testing.T, dir string) { must(t, os.Remove(filepath.Join(dir, "tool"))) },
		"a file that is spoilt below":   func(t *testing.T, dir string) { write(t, filepath.Join(dir, "lib", "so.1"), "") },
		"a missing manifest":            func(t *testing.T, dir string) { must(t, os.Remove(filepath.Join(dir, manifestName))) },
		"an empty manifest":             func(t *testing.T, dir string) { write(t, filepath.Join(dir, manifestName), "{}") },
		"half a manifest":               func(t *testing.T, dir string) { write(t, filepath.Join(dir, manifestName), `{"tool": "12`) },
		"an entry that is half written": func(t *testing.T, dir string) { must(t, os.RemoveAll(dir)); write(t, filepath.Join(dir, "too"), "a") },
	} {
		t.Run(name, func(t *testing.T) {
			e := newEntry(t)
			must(t, e.Get(t.Context(), io.Discard))
			spoil(t, e.Path)
			must(t, e.Get(t.Context(), io.Discard))
			for file, want := range map[string]string{"tool": "a program", "lib/so": "a library"} {
				if got, err := os.ReadFile(filepath.Join(e.Path, file)); err != nil || string(got) != want {
					t.Errorf("%s is %q, want %q (%v)", file, got, want, err)
				}
			}
			if diff := cmp.Diff([]string{"lib", manifestName, "tool"}, names(t, e.Path)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAFailedBuildLeavesNothing(t *testing.T) {
	for name, c := range map[string]struct {
		fill func(string) error
		want string
	}{
		"it fails half way":     {func(dir string) error { write(t, filepath.Join(dir, "x"), ""); return errors.New("no network") }, "no network"},
		"it makes no file":      {func(string) error { return nil }, "cannot seal the tool: it has no files"},
		"it removes its folder": {os.RemoveAll, "cannot seal the tool: lstat "},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEntry(t)
			e.Fill = c.fill
			if err := e.Get(t.Context(), io.Discard); err == nil || !strings.HasPrefix(err.Error(), c.want) {
				t.Errorf("got %v, want %s", err, c.want)
			}
			if diff := cmp.Diff([]string{"tool-1.lock"}, names(t, filepath.Dir(e.Path))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAnUnfinishedBuildIsRemoved(t *testing.T) {
	e := newEntry(t)
	write(t, filepath.Join(e.Path+".building", "half"), "a gigabyte")
	must(t, e.Get(t.Context(), io.Discard))
	if diff := cmp.Diff([]string{"lib", manifestName, "tool"}, names(t, e.Path)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"tool-1", "tool-1.lock"}, names(t, filepath.Dir(e.Path))); diff != "" {
		t.Error(diff)
	}
}

func TestAnUnusableCacheFolderIsNamed(t *testing.T) {
	e := newEntry(t)
	e.Path = filepath.Join(os.DevNull, "tool-1")
	if err := e.Get(t.Context(), io.Discard); err == nil || !strings.HasPrefix(err.Error(), "cannot create the cache for the tool: ") {
		t.Errorf("got %v", err)
	}
}

func TestTwoProcessesBuildOnce(t *testing.T) {
	e := newEntry(t)
	fill, made := e.Fill, 0
	e.Fill = func(dir string) error { made++; return fill(dir) }
	var both sync.WaitGroup
	for range 2 {
		both.Go(func() {
			if err := e.Get(t.Context(), io.Discard); err != nil {
				t.Error(err)
			}
		})
	}
	both.Wait()
	if made != 1 {
		t.Errorf("it was made %d times", made)
	}
}

// One process builds the entry while the other waits. The wait is reported once.
func TestGetSaysForWhomItWaitsAndCanBeInterrupted(t *testing.T) {
	e := newEntry(t)
	making, waited, done := make(chan struct{}), make(chan struct{}), make(chan error)
	first := e
	first.Fill = func(dir string) error {
		close(making)
		<-waited
		return e.Fill(dir)
	}
	go func() { done <- first.Get(context.Background(), io.Discard) }()
	<-making

	ctx, cancel := context.WithCancel(t.Context())
	said := &onWrite{then: cancel}
	err := e.Get(ctx, said)
	if !errors.Is(err, context.Canceled) || err.Error() != "cannot lock the tool: context canceled" {
		t.Errorf("got %v", err)
	}
	if want := fmt.Sprintf("waiting for process %d, which is building the tool\n", os.Getpid()); said.text != want {
		t.Errorf("progress is %q, want %q", said.text, want)
	}

	var once sync.Once
	second := &onWrite{then: func() { once.Do(func() { close(waited) }) }}
	must(t, e.Get(t.Context(), second)) // returns when the first has finished
	must(t, <-done)
	if strings.Count(second.text, "waiting") != 1 {
		t.Errorf("progress is %q", second.text)
	}
}

// onWrite is a progress writer that calls a function after each write.
type onWrite struct {
	text string
	then func()
}

func (w *onWrite) Write(p []byte) (int, error) {
	w.text += string(p)
	w.then()
	return len(p), nil
}

func names(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	must(t, err)
	var all []string
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all
}

func write(t *testing.T, path, text string) {
	t.Helper()
	must(t, os.MkdirAll(filepath.Dir(path), 0o755))
	must(t, os.WriteFile(path, []byte(text), 0o600))
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestSweepRemovesAFolderThatIsStillWritten(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "building")
	must(t, os.Mkdir(dir, 0o755))
	var writer sync.WaitGroup
	begun := make(chan struct{})
	writer.Go(func() {
		for i := range 20_000 {
			if os.WriteFile(filepath.Join(dir, fmt.Sprint(i)), nil, 0o644) != nil && i > 1000 {
				return // the folder is gone
			}
			if i == 1000 {
				close(begun)
			}
		}
	})
	<-begun
	must(t, Sweep(dir))
	writer.Wait()
	if _, err := os.Lstat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it is there: %v", err)
	}
}
