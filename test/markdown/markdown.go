// SPDX-License-Identifier: Apache-2.0

// Package markdown reads the pages of this repository: their links, headings and lines for a shell.
package markdown

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
)

// Page is a file in Markdown.
type Page struct {
	// File is relative to the checkout.
	File string
	// Shell are the lines of code blocks for a shell. A line that goes on is one.
	Shell []string
	// Links are the targets of all links and images.
	Links []string
	// Anchors are what links may name after #.
	Anchors map[string]bool
}

// Pages are all pages of a checkout.
func Pages(t *testing.T, checkout string) []Page {
	t.Helper()
	var all []Page
	err := filepath.WalkDir(checkout, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		switch name := entry.Name(); {
		case entry.IsDir() && notOurs(name):
			return filepath.SkipDir
		case entry.IsDir() || filepath.Ext(name) != ".md":
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		file, err := filepath.Rel(checkout, path)
		page := Parse(string(text))
		page.File = filepath.ToSlash(file)
		all = append(all, page)
		return err
	})
	if err != nil || len(all) == 0 {
		t.Fatalf("there are no pages in %s: %v", checkout, err)
	}
	return all
}

// notOurs are folders without pages, or with those of others.
func notOurs(folder string) bool {
	hidden := len(folder) > 2 && folder[0] == '.'
	return hidden || slices.Contains([]string{"third_party", "testdata", "dist", "bin"}, folder)
}

var (
	link    = regexp.MustCompile(`\]\(([^)\s]+)[^)]*\)`)
	heading = regexp.MustCompile(`^#{1,6} +(.*?) *#*$`)
	anchor  = regexp.MustCompile(`<a (?:id|name)="([^"]+)"`)
	inCode  = regexp.MustCompile("`[^`]*`")
)

// Parse reads a page, or a part of one.
func Parse(text string) Page {
	page := Page{Anchors: map[string]bool{}}
	fence, shell, goesOn := "", false, false
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		trimmed := strings.TrimSpace(line)
		switch {
		case fence == "" && strings.HasPrefix(trimmed, "```"):
			language := strings.TrimLeft(trimmed, "`")
			fence, shell, goesOn = strings.TrimSuffix(trimmed, language), language == "sh" || language == "bash", false
		case fence != "" && trimmed == fence:
			fence = ""
		case fence != "" && shell:
			page.shellLine(trimmed, goesOn)
			goesOn = strings.HasSuffix(trimmed, `\`)
		case fence == "":
			page.prose(line)
		}
	}
	return page
}

func (p *Page) shellLine(line string, goesOn bool) {
	line = strings.TrimSpace(strings.TrimSuffix(line, `\`))
	if goesOn {
		p.Shell[len(p.Shell)-1] += " " + line
		return
	}
	p.Shell = append(p.Shell, line)
}

func (p *Page) prose(line string) {
	if found := heading.FindStringSubmatch(line); found != nil {
		p.addAnchor(slug(found[1]))
	}
	for _, found := range anchor.FindAllStringSubmatch(line, -1) {
		p.addAnchor(found[1])
	}
	for _, found := range link.FindAllStringSubmatch(inCode.ReplaceAllString(line, "code"), -1) {
		p.Links = append(p.Links, found[1])
	}
}

// addAnchor numbers those that are there already, as GitHub does.
func (p *Page) addAnchor(name string) {
	unique := name
	for n := 1; p.Anchors[unique]; n++ {
		unique = fmt.Sprintf("%s-%d", name, n)
	}
	p.Anchors[unique] = true
}

// slug is the anchor that GitHub gives to a heading.
func slug(title string) string {
	title = link.ReplaceAllString(strings.ReplaceAll(title, "[", ""), "")
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case unicode.IsLetter(r) || unicode.IsDigit(r) || r == '-' || r == '_':
			return unicode.ToLower(r)
		}
		return -1
	}, title)
}
