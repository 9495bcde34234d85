// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// committed creates a repository with these files, which are empty.
func committed(t *testing.T, files ...string) repo {
	t.Helper()
	r := repo(t.TempDir())
	for _, file := range files {
		write(t, r, file, "")
	}
	commit(t, r)
	return r
}

// commit commits everything, and returns the commit.
func commit(t *testing.T, r repo) string {
	t.Helper()
	do := func(args ...string) string {
		out, err := r.git(args...)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	do("init", "-q")
	do("add", ".")
	do("-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "commit.gpgsign=false", "commit", "-q", "-m", "a")
	return do("rev-parse", "--short=12", "HEAD")
}

func write(t *testing.T, r repo, file, content string) {
	t.Helper()
	path := filepath.Join(string(r), file)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestNothingIsRecordedForACommitThatWasNotTested(t *testing.T) {
	r := committed(t, "file")
	write(t, r, logFile, "")
	if err := r.clean(); err != nil {
		t.Errorf("the log itself may change: %v", err)
	}
	write(t, r, "file", "changed")
	if err := r.clean(); err == nil || !strings.Contains(err.Error(), "commit them first\nM file") {
		t.Errorf("a file that was changed: %v", err)
	}
}

func TestARecordKeepsTheOthers(t *testing.T) {
	r := committed(t, logFile)
	if err := r.record(small, "a", took(2, 1)); err != nil {
		t.Fatal(err)
	}
	if err := r.record(small, "lint", took(1, 1)); err != nil {
		t.Fatal(err)
	}
	if err := r.record(small, "a", took(3, 2)); err != nil {
		t.Fatal(err)
	}
	log, err := r.readLog()
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]record{"lint": took(1, 1), "a": took(3, 2)}
	if diff := cmp.Diff(want, log, cmp.AllowUnexported(record{})); diff != "" {
		t.Error(diff)
	}
	if log["a"].took != 3*time.Minute {
		t.Errorf("it takes %s", log["a"].took)
	}
}
