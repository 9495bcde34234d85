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

// A layered is a drawing of imports in docs/architecture.md: layers of rows, and arrows within a layer.
// A name that ends with a slash stands for a folder with all that is below it.
type layered struct {
	layer  map[string]int // from above
	arrows map[[2]string]bool
}

// The drawings show every package, and allow what the table allows.
func TestTheDrawingsOfImportsAreTheTable(t *testing.T) {
	drawn := map[string]bool{}
	for _, d := range drawingsOfImports(t) {
		for arrow := range d.arrows {
			if !slices.Contains(arrows[arrow[0]], arrow[1]) {
				t.Errorf("docs/architecture.md draws an arrow from %s to %s, which the table does not allow", arrow[0], arrow[1])
			}
		}
		for _, from := range slices.Sorted(maps.Keys(arrows)) {
			above := d.nodeOf(from)
			drawn[from] = drawn[from] || above != "" && above != "controller/" // whose packages have drawings of their own
			for _, to := range arrows[from] {
				if below := d.nodeOf(to); !d.allows(above, below) {
					t.Errorf("docs/architecture.md draws %s not below %s, and %s may import %s", below, above, from, to)
				}
			}
		}
		for name := range d.layer {
			if _, listed := arrows[name]; !listed && !strings.HasSuffix(name, "/") {
				t.Errorf("docs/architecture.md draws %s, which has no row in the table of imports", name)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(arrows)) {
		if !drawn[name] {
			t.Errorf("no drawing of imports in docs/architecture.md has %s", name)
		}
	}
}

// allows reports whether a drawing allows an import. It says nothing of what it does not show.
func (d layered) allows(from, to string) bool {
	return from == "" || to == "" || from == to || d.layer[from] < d.layer[to] || d.arrows[[2]string{from, to}]
}

// nodeOf returns the name of a package in a drawing: its own, or that of the nearest folder above it.
func (d layered) nodeOf(name string) string {
	if _, has := d.layer[name]; has {
		return name
	}
	for folder := name; folder != "."; folder = path.Dir(folder) {
		if _, has := d.layer[folder+"/"]; has {
			return folder + "/"
		}
	}
	return ""
}

// drawingsOfImports parses the code blocks of a section of docs/architecture.md.
func drawingsOfImports(t *testing.T) []layered {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "docs", "architecture.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "\n## Imports\n")
	section, _, _ = strings.Cut(section, "\n## ")
	var all []layered
	for i, block := range strings.Split(section, "```\n") {
		if i%2 == 1 {
			all = append(all, parseDrawing(block))
		}
	}
	if len(all) == 0 {
		t.Fatal("docs/architecture.md has no drawing of imports")
	}
	return all
}

var gap = regexp.MustCompile(` {2,}`)

// parseDrawing reads rows such as "a   b, c ──► d   — what they do". An arrow down begins a layer.
func parseDrawing(block string) layered {
	d := layered{map[string]int{}, map[[2]string]bool{}}
	layer := 0
	for line := range strings.Lines(block) {
		names, _, _ := strings.Cut(strings.TrimSpace(line), " — ")
		if names == "▼" {
			layer++
			continue
		}
		for _, group := range gap.Split(strings.TrimSpace(names), -1) {
			from, to, arrow := strings.Cut(group, " ──► ")
			for _, above := range packagesIn(from) {
				d.layer[above] = layer
				for _, below := range packagesIn(to) {
					d.layer[below] = layer
					d.arrows[[2]string{above, below}] = arrow
				}
			}
		}
	}
	return d
}

// packagesIn returns the full names in a list of a drawing, which omits controller/ and internal/.
func packagesIn(list string) []string {
	if list == "" {
		return nil
	}
	var all []string
	for _, name := range strings.Split(list, ", ") {
		for _, room := range []string{"controller/internal/", "controller/"} {
			if _, listed := arrows[room+name]; listed {
				name = room + name
			}
		}
		all = append(all, name)
	}
	return all
}
