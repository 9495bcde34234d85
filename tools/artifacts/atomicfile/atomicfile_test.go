// SPDX-License-Identifier: Apache-2.0

package atomicfile

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
)

func TestAFileIsReplacedNotOverwritten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "status.json")
	want(t, Write(path, 0o600, []byte("old and longer")), path, "old and longer")
	reader, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	want(t, Write(path, 0o644, []byte("new")), path, "new")
	if text, err := io.ReadAll(reader); err != nil || string(text) != "old and longer" {
		t.Errorf("an open reader sees %q (%v), want the old content", text, err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o644 {
		t.Errorf("the mode is %v, want 0644 (%v)", info.Mode(), err)
	}
}

func TestAFailedWriteKeepsTheOldFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "image.tar")
	want(t, Write(path, 0o644, []byte("old")), path, "old")
	broken := errors.New("source changed")
	err := Stream(path, 0o644, func(w io.Writer) error {
		_, err := io.WriteString(w, "half of the new")
		return errors.Join(err, broken)
	})
	if !errors.Is(err, broken) {
		t.Errorf("got %v, want %v", err, broken)
	}
	want(t, nil, path, "old")
}

func TestWriteToAMissingFolderFails(t *testing.T) {
	if err := Write(filepath.Join(t.TempDir(), "missing", "x"), 0o644, nil); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}

// want checks the content of a file, and that its folder has no other file.
func want(t *testing.T, err error, path, content string) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(path); err != nil || string(text) != content {
		t.Errorf("%s is %q (%v), want %q", path, text, err, content)
	}
	if files, err := os.ReadDir(filepath.Dir(path)); err != nil || len(files) != 1 {
		t.Errorf("%d files exist, want 1 (%v)", len(files), err)
	}
}
