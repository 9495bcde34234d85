// SPDX-License-Identifier: Apache-2.0

// Package golden compares the output of a test with a file that a person has reviewed. `go test
// PACKAGE -update` rewrites the files; review the diff.
package golden

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// Compare fails the test unless the file has exactly this content.
func Compare(t *testing.T, file string, got []byte) {
	t.Helper()
	if *update {
		write(t, file, got)
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%v (run the test with -update to write it)", err)
	}
	if !bytes.Equal(want, got) {
		t.Errorf("%s differs (-want +got):\n%s", file, cmp.Diff(string(want), string(got)))
	}
}

// Between fails the test unless the file has exactly this content between two lines.
func Between(t *testing.T, file, begin, end, got string) {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, ok := strings.Cut(string(content), begin)
	_, tail, also := strings.Cut(rest, end)
	if !ok || !also {
		t.Fatalf("%s does not contain %q and then %q", file, begin, end)
	}
	Compare(t, file, []byte(head+begin+got+end+tail))
}

// Only fails the test if a file matches the pattern and no test case uses it, as after a case
// is renamed.
func Only(t *testing.T, pattern string, asked []string) {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if !slices.Contains(asked, file) {
			t.Errorf("no test uses %s: remove it", file)
		}
	}
}

// Pairs runs the transformation on every *.in.yaml of a folder and compares the result with the
// *.out.yaml next to it. It fails if an *.out.yaml has no *.in.yaml.
func Pairs(t *testing.T, folder string, transform func(t *testing.T, in []byte) []byte) {
	t.Helper()
	inputs, err := filepath.Glob(filepath.Join(folder, "*.in.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if len(inputs) == 0 {
		t.Fatalf("%s has no *.in.yaml", folder)
	}
	var outputs []string
	for _, input := range inputs {
		base := strings.TrimSuffix(input, ".in.yaml")
		outputs = append(outputs, base+".out.yaml")
		t.Run(filepath.Base(base), func(t *testing.T) {
			in, err := os.ReadFile(input)
			if err != nil {
				t.Fatal(err)
			}
			Compare(t, base+".out.yaml", transform(t, in))
		})
	}
	Only(t, filepath.Join(folder, "*.out.yaml"), outputs)
}

func write(t *testing.T, file string, content []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, content, 0o644); err != nil {
		t.Fatal(err)
	}
}
