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

// row is a row of the table in docs/compatibility.md.
type row struct {
	defect         string
	tests, mutants []string
}

var (
	code  = regexp.MustCompile("`([^`]+)`")
	named = regexp.MustCompile(`Test\w+`)
)

func rows(t *testing.T) []row {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "compatibility.md"))
	if err != nil {
		t.Fatal(err)
	}
	var all []row
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(line, " | ")
		if !strings.HasPrefix(line, "| H-") || len(cells) != 5 {
			continue
		}
		r := row{defect: strings.TrimPrefix(cells[0], "| ")}
		tests := code.FindAllStringSubmatch(cells[3], -1)
		for i := 0; i+1 < len(tests); i += 2 {
			r.tests = append(r.tests, tests[i][1]+" "+tests[i+1][1])
		}
		for _, m := range code.FindAllStringSubmatch(cells[4], -1) {
			r.mutants = append(r.mutants, m[1])
		}
		all = append(all, r)
	}
	return all
}

// The table names the test that detects each defect, and the mutant that proves it. This test
// compares the table with the code.
func TestTheTableOfDefectsIsTrue(t *testing.T) {
	var got []string
	for _, r := range rows(t) {
		got = append(got, r.defect)
		if len(r.tests) == 0 || len(r.mutants) == 0 {
			t.Errorf("%s has no test or no mutant", r.defect)
		}
		for _, test := range r.tests {
			if !exists(t, test) {
				t.Errorf("%s: there is no test %s", r.defect, test)
			}
		}
		for _, name := range r.mutants {
			checkMutant(t, r, name)
		}
	}
	if want := numbers(); !slices.Equal(got, want) {
		t.Errorf("the rows are\n%v, want\n%v", got, want)
	}
}

// checkMutant fails unless the mutant is of the row's defect and runs one of the row's tests.
func checkMutant(t *testing.T, r row, name string) {
	t.Helper()
	found, err := load(".", []string{name})
	if err != nil {
		t.Errorf("%s: %v", r.defect, err)
		return
	}
	m := found[0]
	if m.defect != r.defect {
		t.Errorf("%s has the mutant %s, whose defect is %s", r.defect, name, m.defect)
	}
	if !slices.ContainsFunc(r.tests, func(test string) bool {
		folder, function, _ := strings.Cut(test, " ")
		return folder == folderOf(m.test) && strings.HasPrefix(function, named.FindString(m.test))
	}) {
		t.Errorf("%s: none of its tests is the one of the mutant %s: %s", r.defect, name, m.test)
	}
}

// exists reports whether a test exists. It is written as a folder and a function.
func exists(t *testing.T, test string) bool {
	t.Helper()
	folder, function, _ := strings.Cut(test, " ")
	files, err := filepath.Glob(filepath.Join("..", "..", folder, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), "\nfunc "+function+"(") {
			return true
		}
	}
	return false
}
