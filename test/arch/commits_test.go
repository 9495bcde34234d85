// SPDX-License-Identifier: Apache-2.0

package arch_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
)

// lastUnchecked is the commit after which subjects follow CONTRIBUTING.md.
const lastUnchecked = "a6762a0a59930a22bd090f5c54f39d5e2200f949"

const longestSubject = 72

// subjectForm is 'area: words'. An area is a package, folder or file, or several of them.
var subjectForm = regexp.MustCompile(`^[\w./*{}-]+(, [\w./*{}-]+)*: \S`)

func TestSubjectsOfCommitsAreShortAndNameAnArea(t *testing.T) {
	subjects, ok := subjects(t)
	if !ok {
		return
	}
	for _, subject := range subjects {
		if problem := problemOf(subject); problem != "" {
			t.Errorf("the commit %q %s: see CONTRIBUTING.md", subject, problem)
		}
	}
	t.Logf("%d subjects were checked", len(subjects))
}

func TestProblemsOfSubjects(t *testing.T) {
	for subject, want := range map[string]string{
		"lifecycle: count the pause from the last pod's exit": "",
		"lifecycle, kinds: plain English":                     "",
		"test/arch: " + strings.Repeat("ä", 61):               "",
		"test/arch: " + strings.Repeat("a", 62):               "has more than 72 characters",
		"Count the pause from the last pod's exit":            "does not have the form 'area: words'",
		"lifecycle:": "does not have the form 'area: words'",
	} {
		if got := problemOf(subject); got != want {
			t.Errorf("%q: %q, want %q", subject, got, want)
		}
	}
}

func problemOf(subject string) string {
	if utf8.RuneCountInString(subject) > longestSubject {
		return "has more than 72 characters"
	}
	if !subjectForm.MatchString(subject) {
		return "does not have the form 'area: words'"
	}
	return ""
}

// subjects returns the subjects of all commits after lastUnchecked, without merges. It returns
// false if the history is missing, as in a tarball or a shallow clone.
func subjects(t *testing.T) ([]string, bool) {
	t.Helper()
	out, err := git("log", "--no-merges", "--format=%s", lastUnchecked+"..HEAD")
	if err != nil {
		t.Logf("no subject was checked: this folder does not have the history since %.12s: %v", lastUnchecked, err)
		return nil, false
	}
	noticeNewCommits()
	return strings.FieldsFunc(out, func(r rune) bool { return r == '\n' }), true
}

// noticeNewCommits reads a file that every commit changes, so that go test does not use a
// cached result. It works only if that file is below this module, as in a normal clone.
func noticeNewCommits() {
	if name, err := git("rev-parse", "--git-path", "logs/HEAD"); err == nil {
		_, _ = os.ReadFile(filepath.Join(root, strings.TrimSpace(name))) // the content does not matter
	}
}

func git(args ...string) (string, error) {
	cmd := exec.Command("git", args...)
	cmd.Dir = root
	out, err := cmd.Output()
	return string(out), err
}
