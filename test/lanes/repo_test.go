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

// committed creates a repository in which each of these files is written in a separate commit.
// It returns the commits.
func committed(t *testing.T, files ...string) (repo, []string) {
	t.Helper()
	r := repo(t.TempDir())
	do := func(args ...string) string {
		out, err := r.git(args...)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	do("init", "-q")
	var commits []string
	for _, file := range files {
		write(t, r, file, "")
		do("add", ".")
		do("-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "commit.gpgsign=false", "commit", "-q", "-m", file)
		commits = append(commits, do("rev-parse", "--short=12", "HEAD"))
	}
	return r, commits
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

func TestWhatHasChangedSinceALaneWasRecorded(t *testing.T) {
	r, commits := committed(t, "one/file", "two/file", "three/file")
	cases := map[string]struct {
		input, commit string
		want          bool
	}{
		"a file was written after it":         {"two", commits[0], true},
		"it was recorded with the file":       {"two", commits[1], false},
		"other files were written":            {"one", commits[0], false},
		"it was never recorded":               {"one", "", true},
		"its commit is not in the repository": {"one", "0123456789ab", true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got := r.changed([]lane{{name: "it", inputs: []string{c.input}}}, map[string]record{"it": {commit: c.commit}})
			if got["it"] != c.want {
				t.Errorf("changed is %t, not %t", got["it"], c.want)
			}
		})
	}
}

func TestNothingIsRecordedForACommitThatWasNotTested(t *testing.T) {
	r, _ := committed(t, "file")
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
	r, _ := committed(t, logFile)
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
