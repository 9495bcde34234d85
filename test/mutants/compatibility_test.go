// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// numbers are the known defects of AppWrapper 1.2 that this controller must not have.
func numbers() []string {
	var all []string
	for _, of := range [][2]int{{1, 25}, {27, 35}, {38, 42}, {45, 47}} {
		for n := of[0]; n <= of[1]; n++ {
			all = append(all, "H-"+strconv.Itoa(n))
		}
	}
	return all
}

var named = regexp.MustCompile(`Test\w+`)

// The page has each defect, and a mutant reintroduces it, which a test that exists must notice.
func TestTheTableOfDefectsIsTrue(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "compatibility.md"))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, found := range regexp.MustCompile(`(?m)^\| (H-\d+) \|`).FindAllStringSubmatch(string(text), -1) {
		got = append(got, found[1])
	}
	if want := numbers(); !slices.Equal(got, want) {
		t.Errorf("the rows are\n%v, want\n%v", got, want)
	}
	all, err := load(".", nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, defect := range got {
		i := slices.IndexFunc(all, func(m mutant) bool { return m.defect == defect })
		if i < 0 {
			t.Errorf("%s has no mutant", defect)
			continue
		}
		if !exists(t, folderOf(all[i].test), named.FindString(all[i].test)) {
			t.Errorf("%s: there is no test for %s", defect, all[i].test)
		}
	}
}

// exists reports whether a folder has a test with a name that begins so.
func exists(t *testing.T, folder, function string) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", "..", folder, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), "\nfunc "+function) {
			return true
		}
	}
	return false
}
