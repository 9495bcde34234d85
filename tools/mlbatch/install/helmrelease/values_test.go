// SPDX-License-Identifier: Apache-2.0

package helmrelease

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mlbatch/mlbatch/test/wording"
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

func TestAValuesFileThatCannotBeMeantIsRefused(t *testing.T) {
	for text, want := range map[string]string{
		"- name: blue":             "it has no keys: write lines such as 'kueue: {enabled: false}'",
		"kueue":                    "it has no keys: write lines such as 'kueue: {enabled: false}'",
		"kueue:\n\tenabled: false": "indent with spaces, not with tabs: ",
		"kueue: {enabled: false}\npriorities: {enabled: true}\nkueue: {replicas: 2}": `the key "kueue" is there twice, and the first one has no effect: join them (line 3)`,
		"teams:\n- name: blue\n  users: [a]\n  users: [b]":                           `the key "users" is there twice, and the first one has no effect: join them (line 4)`,
		"kueue: {enabled: [}": "",
	} {
		file := filepath.Join(t.TempDir(), "values.yaml")
		write(t, file, text)
		_, err := Release{Values: []string{file}}.MergedValues()
		wording.Wanted(t, err, "cannot read the values file "+file+": "+want)
	}
	_, err := Release{Values: []string{"/no/such/file"}}.MergedValues()
	wording.Wanted(t, err, "cannot read the values file /no/such/file: open /no/such/file: no such file or directory")
	_, err = Release{Set: []string{"kueue.enabled"}}.MergedValues()
	wording.Wanted(t, err, `cannot read --set kueue.enabled: key "enabled" has no value`)
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
