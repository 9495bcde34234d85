// SPDX-License-Identifier: Apache-2.0

package complaints

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
)

// A regular expression is no sentence.
func TestEveryPatternOfTheSchemasHasWords(t *testing.T) {
	files, err := filepath.Glob("../../charts/*/values.schema.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("there are no schemas: %v", err)
	}
	files = append(files, "../pytorchjob-generator/chart/values.schema.json")
	used := map[string]bool{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var schema any
		if err := json.Unmarshal(text, &schema); err != nil {
			t.Fatal(err)
		}
		for _, pattern := range patternsIn(schema) {
			used[pattern] = true
			if patterns[pattern] == "" {
				t.Errorf("%s has the pattern %s: say in patterns what is wrong with a value that does not match", file, pattern)
			}
		}
	}
	for pattern := range patterns {
		if !used[pattern] {
			t.Errorf("no schema has the pattern %s", pattern)
		}
	}
}

func patternsIn(schema any) (found []string) {
	switch s := schema.(type) {
	case map[string]any:
		if pattern, ok := s["pattern"].(string); ok {
			found = append(found, pattern)
		}
		for _, value := range s {
			found = append(found, patternsIn(value)...)
		}
	case []any:
		for _, value := range s {
			found = append(found, patternsIn(value)...)
		}
	}
	return found
}
