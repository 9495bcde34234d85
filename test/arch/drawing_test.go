// SPDX-License-Identifier: Apache-2.0

package arch_test

import (
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The tree in docs/architecture.md shows every package that has a row in arrows, and no
// folder that does not exist.
func TestTheDrawingShowsEveryPackage(t *testing.T) {
	drawn := drawnFolders(t)
	for _, name := range slices.Sorted(maps.Keys(arrows)) {
		if !drawn[name] {
			t.Errorf("the tree in docs/architecture.md does not show %s", name)
		}
	}
	for folder := range drawn {
		if info, err := os.Stat(filepath.Join(root, folder)); err != nil || !info.IsDir() {
			t.Errorf("the tree in docs/architecture.md shows %s, which is not a folder", folder)
		}
	}
}

// drawnLine is a line of the tree: indentation and folders.
var drawnLine = regexp.MustCompile(`^( *)((?:[a-z0-9/-]+/\s+)+)`)

// drawnFolders parses the tree: two spaces per level, one or more folders per line.
func drawnFolders(t *testing.T) map[string]bool {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "docs", "architecture.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "## The tree\n\n```\n")
	tree, _, found := strings.Cut(rest, "```")
	if !found {
		t.Fatal("docs/architecture.md has no tree")
	}
	drawn := map[string]bool{}
	var above []string
	for line := range strings.Lines(tree) {
		parts := drawnLine.FindStringSubmatch(line)
		if parts == nil || len(parts[1])/2 > len(above) {
			continue // a file, or the continuation of a description
		}
		above = above[:len(parts[1])/2]
		folders := strings.Fields(parts[2])
		for _, folder := range folders {
			drawn[path.Join(path.Join(above...), folder)] = true
		}
		above = append(above, folders[0])
	}
	return drawn
}
