// SPDX-License-Identifier: Apache-2.0

package markdown_test

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/mlbatch/mlbatch/test/markdown"
)

const checkout = "../.."

// A link leads to a file of this repository, and to a heading that the page has.
func TestLinksLeadSomewhere(t *testing.T) {
	pages := map[string]markdown.Page{}
	for _, page := range markdown.Pages(t, checkout) {
		pages[page.File] = page
	}
	tested := 0
	for _, page := range pages {
		for _, link := range page.Links {
			if strings.Contains(link, "://") || strings.HasPrefix(link, "mailto:") {
				continue
			}
			tested++
			file, name, named := strings.Cut(link, "#")
			target := page.File
			if file != "" {
				target = path.Join(path.Dir(page.File), file)
			}
			if _, err := os.Stat(filepath.Join(checkout, filepath.FromSlash(target))); err != nil {
				t.Errorf("%s links to %s, which does not exist", page.File, link)
				continue
			}
			if other, isPage := pages[target]; named && isPage && !other.Anchors[name] {
				t.Errorf("%s links to %s, but %s has no such heading", page.File, link, target)
			}
		}
	}
	if tested < 300 {
		t.Errorf("only %d links were found", tested)
	}
}

// crowded are pages with longer cells: each row of the first two is one defence or one test, and comments of Go types
// make the third.
var crowded = []string{"docs/security.md", "docs/testing.md", "docs/api/codeflare.md"}

// A cell is no paragraph. What a link leads to does not count.
func TestCellsAreShort(t *testing.T) {
	cells, address := regexp.MustCompile(`\s+\|\s+|^\|\s*|\s*\|$`), regexp.MustCompile(`\]\([^)]*\)`)
	for _, page := range markdown.Pages(t, checkout) {
		if !strings.HasPrefix(page.File, "docs/") && path.Dir(page.File) != "." || strings.HasPrefix(page.File, "docs/evidence/") ||
			slices.Contains(crowded, page.File) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(checkout, page.File))
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			if !strings.HasPrefix(line, "|") {
				continue
			}
			for _, cell := range cells.Split(address.ReplaceAllString(strings.TrimSpace(line), "]"), -1) {
				if length := utf8.RuneCountInString(cell); length > 200 {
					t.Errorf("%s: a cell has %d characters, and may have 200: %.60s", page.File, length, cell)
				}
			}
		}
	}
}

var (
	target = regexp.MustCompile(`(?m)^([A-Za-z][A-Za-z0-9_-]*):(?:[^=]|$)`)
	inner  = regexp.MustCompile(`\$\([^)]*\)`)
	wanted = regexp.MustCompile(`(?:^|[;&|] *)make((?: +[A-Za-z0-9_=./~$()-]+)+)`)
)

func TestTargetsOfMakeExist(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(checkout, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	exists := map[string]bool{}
	for _, found := range target.FindAllStringSubmatch(string(text), -1) {
		exists[found[1]] = true
	}
	tested := 0
	for _, page := range markdown.Pages(t, checkout) {
		for _, line := range page.Shell {
			line, _, _ = strings.Cut(inner.ReplaceAllString(line, "x"), " #")
			for _, found := range wanted.FindAllStringSubmatch(line, -1) {
				for _, word := range strings.Fields(found[1]) {
					if strings.Contains(word, "=") {
						continue
					}
					tested++
					if !exists[word] {
						t.Errorf("%s: make %s: the Makefile has no such target", page.File, word)
					}
				}
			}
		}
	}
	if tested < 20 {
		t.Errorf("only %d targets were found", tested)
	}
}
