// SPDX-License-Identifier: Apache-2.0

package helmrelease

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestLaterValuesWin(t *testing.T) {
	dir := t.TempDir()
	first, second := filepath.Join(dir, "first"), filepath.Join(dir, "second")
	write(t, first, "onlyFirst: 1\nnothing: 1\nboth: first\nlist: [a, b]\nmap: {onlyFirst: 1, both: first}\n")
	write(t, second, "onlySecond: 2\nnothing: null\nboth: second\nlist: [c]\nmap: {onlySecond: 2, both: second}\n")
	got, err := Release{Values: []string{first, second}, Set: []string{"assigned=3"}}.MergedValues()
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"onlyFirst": 1.0, "onlySecond": 2.0, "both": "second", "list": []any{"c"}, "nothing": nil, "assigned": int64(3),
		"map": map[string]any{"onlyFirst": 1.0, "onlySecond": 2.0, "both": "second"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if got, err := (Release{}).MergedValues(); err != nil || len(got) != 0 {
		t.Errorf("no files give %v, %v", got, err)
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
