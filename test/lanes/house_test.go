// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var root = filepath.Join("..", "..")

// afterwards are packages with tests that are in no lane: make test-long runs them.
var afterwards = []string{"test/bench/cluster", "test/siege", "test/takeover", "test/turns"}

func TestEveryLaneIsATargetThatMakeHelpLists(t *testing.T) {
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range lanes {
		if !regexp.MustCompile(`(?m)^` + l.name + `: ## `).Match(makefile) {
			t.Errorf("the Makefile has no target %s with a description", l.name)
		}
	}
}

func TestEveryTestThatStartsAClusterBelongsToOneLane(t *testing.T) {
	lanesOf := map[string][]string{} // by package: the part that each lane runs
	for _, l := range lanes {
		for _, run := range clusterTests(t, l.name) {
			lanesOf[run.pkg] = append(lanesOf[run.pkg], run.part)
		}
	}
	for _, pkg := range clusterPackages(t) {
		parts := lanesOf[pkg]
		delete(lanesOf, pkg)
		if !once(parts) && !slices.Contains(afterwards, pkg) {
			t.Errorf("%s: lanes run %q of it; either one lane must run all of it, or one lane must run what another skips", pkg, parts)
		}
	}
	for pkg := range lanesOf {
		t.Errorf("a lane runs %s, which has no tests with the tag cluster", pkg)
	}
}

func TestWhatIsNoLaneRunsInTestLong(t *testing.T) {
	for _, pkg := range afterwards {
		if !slices.ContainsFunc(clusterTests(t, "test-long"), func(run clusterTest) bool { return run.pkg == pkg }) {
			t.Errorf("make test-long does not run %s", pkg)
		}
	}
}

// once reports whether the parts that lanes run are the whole package, without overlap: one lane
// skips what the others run.
func once(parts []string) bool {
	if len(parts) == 1 {
		return parts[0] == ""
	}
	var run, skipped []string
	skips := 0
	for _, part := range parts {
		if pattern, isSkip := strings.CutPrefix(part, "-skip "); isSkip {
			skipped = alternatives(pattern)
			skips++
		} else {
			run = append(run, alternatives(strings.TrimPrefix(part, "-run "))...)
		}
	}
	slices.Sort(run)
	slices.Sort(skipped)
	return skips == 1 && slices.Equal(run, skipped)
}

// alternatives are those of a quoted pattern like '^(A|B)$'.
func alternatives(pattern string) []string {
	return strings.Split(strings.Trim(pattern, "'^$()"), "|")
}

func TestPartsThatRunOnce(t *testing.T) {
	for _, test := range []struct {
		parts []string
		want  bool
	}{
		{[]string{""}, true},
		{[]string{"-run '^A$'"}, false},
		{[]string{"-run '^A$'", "-skip '^A$'"}, true},
		{[]string{"-skip '^(A|B|C)$'", "-run '^(C|A)$'", "-run '^B$'"}, true},
		{[]string{"-skip '^(A|B|C)$'", "-run '^(C|A)$'"}, false},
		{[]string{"-skip '^(A|B)$'", "-run '^(B|A)$'", "-run '^B$'"}, false},
		{[]string{"", "-run '^A$'"}, false},
		{[]string{"-skip '^A$'", "-skip '^A$'"}, false},
		{nil, false},
	} {
		if got := once(test.parts); got != test.want {
			t.Errorf("%q: %v", test.parts, got)
		}
	}
}

// clusterTest is a go test command in a Makefile recipe: the package, and the part of it.
type clusterTest struct{ pkg, part string }

var clusterTestLine = regexp.MustCompile(`go test -tags=cluster .* \./(test/[a-z0-9/]+)(?: (-(?:run|skip) '[^']*'))?`)

// clusterTests returns the go test commands of a target.
func clusterTests(t *testing.T, target string) (all []clusterTest) {
	t.Helper()
	for _, found := range clusterTestLine.FindAllStringSubmatch(recipe(t, target), -1) {
		all = append(all, clusterTest{found[1], found[2]})
	}
	return all
}

// recipe returns the commands that make would run.
func recipe(t *testing.T, target string) string {
	t.Helper()
	command, err := repo(root).command(target)
	if err != nil {
		t.Fatal(err)
	}
	return command
}

// clusterPackages returns the folders of test/ with tests that have the build tag. All tests in
// such a folder have it.
func clusterPackages(t *testing.T) (all []string) {
	t.Helper()
	for _, dir := range folders(t, "test") {
		with, without := read(t, dir, "cluster"), read(t, dir)
		tagged, plain := len(with.XTestGoFiles)+len(with.TestGoFiles), len(without.XTestGoFiles)+len(without.TestGoFiles)
		if tagged == plain {
			continue
		}
		if plain > 0 {
			t.Errorf("%s: either all or none of its tests must have the tag cluster", dir)
		}
		all = append(all, dir)
	}
	if len(all) == 0 {
		t.Error("there are no tests that start clusters")
	}
	return all
}

// folders returns the folders of this module below top, relative to the repository.
func folders(t *testing.T, top string) (all []string) {
	t.Helper()
	err := filepath.WalkDir(filepath.Join(root, top), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.IsDir() {
			return err
		}
		name, _ := filepath.Rel(root, path) // path is below root
		_, err = os.Stat(filepath.Join(path, "go.mod"))
		if name != "." && (err == nil || entry.Name() == "testdata" || strings.HasPrefix(entry.Name(), ".")) {
			return fs.SkipDir // another module, or not Go
		}
		all = append(all, filepath.ToSlash(name))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// read returns the package in a folder; it is empty if there is none.
func read(t *testing.T, dir string, tags ...string) *build.Package {
	t.Helper()
	context := build.Default
	context.BuildTags = tags
	p, err := context.ImportDir(filepath.Join(root, dir), 0)
	if none := (*build.NoGoError)(nil); err != nil && !errors.As(err, &none) {
		t.Fatal(err)
	}
	return p
}

// Tests that only start programs. With the race detector, each program would be built again.
var withoutRaces = []string{"test/mutants"}

func TestWhatHasGoroutinesIsTestedWithTheRaceDetector(t *testing.T) {
	raced := strings.Fields(recipe(t, "race"))
	for _, dir := range folders(t, "") {
		p := read(t, dir)
		if len(p.TestGoFiles)+len(p.XTestGoFiles) == 0 || slices.Contains(raced, "./"+dir) || slices.Contains(withoutRaces, dir) {
			continue
		}
		for _, file := range p.GoFiles {
			if startsGoroutines(t, filepath.Join(p.Dir, file)) {
				t.Errorf("%s starts goroutines in %s: add the package to RACED in the Makefile", dir, file)
			}
		}
	}
}

func startsGoroutines(t *testing.T, file string) (found bool) {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(parsed, func(n ast.Node) bool {
		if _, is := n.(*ast.GoStmt); is {
			found = true
		}
		if s, is := n.(*ast.SelectorExpr); is && s.Sel.Name == "Go" {
			found = true
		}
		return !found
	})
	return found
}
