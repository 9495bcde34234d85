// SPDX-License-Identifier: Apache-2.0

package arch_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	auditRow  = regexp.MustCompile(`(?m)^\| (A\d+) \| [^|]+ \| ([^|]+) \|$`)
	quoted    = regexp.MustCompile("`([^`]+)`")
	testFunc  = regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	sameName  = regexp.MustCompile(`(?m)^(?:metadata: \{|  )name: ([a-z-]+)`)
	withdrawn = "withdrawn: ["
)

// A finding whose test is renamed or removed would come back.
func TestEveryFindingOfTheAuditHasATest(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(root, "docs", "evidence", "audit.md"))
	if err != nil {
		t.Fatal(err)
	}
	there := namesOfTests(t)
	rows := auditRow.FindAllStringSubmatch(string(page), -1)
	for i, row := range rows {
		if row[1] != fmt.Sprintf("A%d", i+1) {
			t.Errorf("row %d is %s", i+1, row[1])
		}
		tests := quoted.FindAllStringSubmatch(row[2], -1)
		if len(tests) == 0 && !strings.HasPrefix(row[2], withdrawn) {
			t.Errorf("%s has no test", row[1])
		}
		for _, test := range tests {
			if !there[test[1]] {
				t.Errorf("%s: there is no test %q", row[1], test[1])
			}
		}
	}
	if len(rows) != 37 {
		t.Errorf("%d findings have a row", len(rows))
	}
}

// namesOfTests are those of test functions, of objects with which test/same knows that something was wrong, and of
// rows of explain.
func namesOfTests(t *testing.T) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	err := filepath.WalkDir(root, func(file string, _ fs.DirEntry, err error) error {
		pattern := testFunc
		switch name := filepath.ToSlash(file); {
		case strings.HasSuffix(name, "/answers/explain/testdata"):
			return rowsOfExplain(file, names)
		case strings.HasSuffix(name, "/test/same/corpus/known.yaml"):
			pattern = sameName
		case !strings.HasSuffix(name, "_test.go"):
			return err
		}
		text, err := os.ReadFile(file)
		for _, found := range pattern.FindAllStringSubmatch(string(text), -1) {
			names[found[1]] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func rowsOfExplain(folder string, names map[string]bool) error {
	rows, err := filepath.Glob(filepath.Join(folder, "*.in.yaml"))
	for _, row := range rows {
		names[strings.TrimSuffix(filepath.Base(row), ".in.yaml")] = true
	}
	return err
}
