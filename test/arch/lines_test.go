// SPDX-License-Identifier: Apache-2.0

package arch_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
)

// longestLine is the most characters of a line of prose.
const longestLine = 120

// Code blocks and tables may have longer lines, and so may a word that cannot be split.
func TestLinesOfPagesAreShort(t *testing.T) {
	for _, file := range filesThatEnd(t, ".md") {
		code := false
		checkLines(t, file, func(line string) (prose string) {
			line = strings.TrimSpace(line)
			if strings.HasPrefix(line, "```") {
				code = !code
			}
			if code || strings.HasPrefix(line, "|") {
				return ""
			}
			return listMarker.ReplaceAllString(line, "")
		})
	}
}

// Markers, which programs read, may be longer.
func TestLinesOfCommentsAreShort(t *testing.T) {
	for _, file := range filesThatEnd(t, ".go") {
		checkLines(t, file, func(line string) (prose string) {
			prose, is := strings.CutPrefix(strings.TrimSpace(line), "// ")
			if !is || strings.HasPrefix(prose, "+") {
				return ""
			}
			return prose
		})
	}
}

var listMarker = regexp.MustCompile(`^([-*]|\d+\.) `)

// checkLines checks the lines that have prose.
func checkLines(t *testing.T, file string, proseOf func(line string) string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	number := 0
	for line := range strings.Lines(string(text)) {
		number++
		line = strings.TrimSuffix(line, "\n")
		prose := proseOf(line)
		if length := utf8.RuneCountInString(line); length > longestLine && splits(prose) {
			t.Errorf("%s:%d has %d characters, and may have %d", strings.TrimPrefix(file, root+"/"), number, length, longestLine)
		}
	}
}

var inCode = regexp.MustCompile("`[^`]*`")

// splits reports whether prose has a space outside of `code`.
func splits(prose string) bool {
	return strings.Contains(inCode.ReplaceAllString(strings.TrimSpace(prose), ""), " ")
}

// filesThatEnd are the files of the repository with this ending, but not what is built.
func filesThatEnd(t *testing.T, ending string) []string {
	t.Helper()
	var found []string
	err := filepath.WalkDir(root, func(file string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && file != root && (strings.HasPrefix(entry.Name(), ".") || file == filepath.Join(root, "dist") || file == filepath.Join(root, "bin")):
			return fs.SkipDir
		case strings.HasSuffix(entry.Name(), ending):
			found = append(found, file)
		}
		return nil
	})
	if err != nil || len(found) == 0 {
		t.Fatalf("%d files end with %s: %v", len(found), ending, err)
	}
	return found
}

func TestSplits(t *testing.T) {
	for prose, want := range map[string]bool{
		"https://example.com/a-long-address": false,
		"`tolerations and more`:":            false,
		"two words":                          true,
		"`code` and words":                   true,
		"":                                   false,
	} {
		if splits(prose) != want {
			t.Errorf("%q: got %t", prose, !want)
		}
	}
}
