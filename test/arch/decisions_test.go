// SPDX-License-Identifier: Apache-2.0

package arch_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var decisionHead = regexp.MustCompile(`^# (\d+)\. (.+)\n\n\*\*Date:\*\* (\d{4}-\d\d-\d\d)\. \*\*Status:\*\* (accepted|superseded by \[[^\]]+\]\([^)]+\))\.\n`)

func TestEveryDecisionHasADateAStatusAndARow(t *testing.T) {
	folder := filepath.Join(root, "docs", "decisions")
	index, err := os.ReadFile(filepath.Join(folder, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	pages, err := filepath.Glob(filepath.Join(folder, "0*.md"))
	if err != nil || len(pages) == 0 {
		t.Fatalf("there are no decisions in %s: %v", folder, err)
	}
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		name := filepath.Base(page)
		head := decisionHead.FindStringSubmatch(string(text))
		if head == nil {
			t.Errorf("docs/decisions/%s does not begin with '# N. Title' and '**Date:** YYYY-MM-DD. **Status:** accepted.'", name)
			continue
		}
		row := "| " + head[1] + " | [" + head[2] + "](" + name + ") | " + head[3] + " | " + head[4] + " |\n"
		if !strings.Contains(string(index), row) {
			t.Errorf("docs/decisions/README.md lacks the row\n%s", row)
		}
	}
}
