// SPDX-License-Identifier: Apache-2.0

package main

import (
	"path"
	"regexp"
	"slices"
	"strings"
)

// inputs are the files that can change the result of a lane: the packages that its command tests or builds, with
// what these import, the files and folders that their sources name, and what the lane's row adds.
type inputs struct {
	tree *tree
	// packages have the folders of packages. Of a package that is not tested, its own tests are no input.
	packages map[string]tested
	// paths are files and folders.
	paths map[string]bool
}

type tested bool

// everyLane is an input of each lane.
var everyLane = []string{"go.mod", "go.sum"}

// packageWord is a word of a command that names a package.
var packageWord = regexp.MustCompile(`\s\./([a-z0-9/_.-]+)`)

// inputsOf starts with the words of a lane's command: a package that it tests, builds or runs.
func (t *tree) inputsOf(command string, more []string) inputs {
	i := inputs{tree: t, packages: map[string]tested{}, paths: map[string]bool{}}
	for _, p := range slices.Concat(everyLane, more) {
		if dir, isPackage := strings.CutPrefix(p, "./"); isPackage {
			i.add(dir, false)
		} else {
			i.paths[p] = true
		}
	}
	for line := range strings.Lines(command) {
		for _, found := range packageWord.FindAllStringSubmatch(line, -1) {
			i.add(found[1], tested(strings.Contains(line, "go test ")))
		}
	}
	return i
}

// add adds a package with all that it imports and names.
func (i inputs) add(dir string, tests tested) {
	before, known := i.packages[dir]
	p, exists := i.tree.packages[dir]
	if !exists || known && (bool(before) || !bool(tests)) {
		return
	}
	i.packages[dir] = tests
	imports, named := p.imports, i.tree.named(dir, p.files)
	if tests {
		imports, named = slices.Concat(imports, p.testImports), slices.Concat(named, i.tree.named(dir, p.testFiles))
	}
	for _, other := range imports {
		i.add(other, false)
	}
	for _, other := range named {
		if _, isPackage := i.tree.packages[other]; isPackage {
			i.add(other, false)
		} else {
			i.paths[other] = true
		}
	}
}

// reads reports whether a file is an input. What this program records is none.
func (i inputs) reads(file string) bool {
	if file == logFile || file == flakesFile {
		return false
	}
	for at := file; at != "."; at = path.Dir(at) {
		if i.paths[at] {
			return true
		}
	}
	dir := i.tree.packageOf(file)
	tests, isInput := i.packages[dir]
	return isInput && (bool(tests) || !ofTests(strings.TrimPrefix(file, dir+"/")))
}

// ofTests reports whether only the tests of a package read this file in its folder.
func ofTests(file string) bool {
	return strings.HasSuffix(file, "_test.go") || slices.Contains(strings.Split(path.Dir(file), "/"), "testdata")
}
