// SPDX-License-Identifier: Apache-2.0

package runplan_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	// sentence is a call that makes a problem, with the format of its sentence.
	sentence = regexp.MustCompile(`(?:impossible|problem)\((?:[A-Za-z]+, )?"((?:[^"\\]|\\.)+)"`)
	// verbs are what a format leaves open.
	verbs = regexp.MustCompile(`%[a-z]`)
)

// Whoever looks for a sentence of a plan finds it on the page, by what is always the same in it.
func TestThePageHasEverySentence(t *testing.T) {
	page, err := os.ReadFile("../../docs/api/codeflare.md")
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range sentence.FindAllSubmatch(source, -1) {
			parts := verbs.Split(string(match[1]), -1)
			longest := strings.TrimSpace(slices.MaxFunc(parts, func(a, b string) int { return len(a) - len(b) }))
			if found++; longest != "" && !strings.Contains(string(page), longest) {
				t.Errorf("the page lacks %q", match[1])
			}
		}
	}
	if found < 30 {
		t.Errorf("only %d sentences were found", found)
	}
}
