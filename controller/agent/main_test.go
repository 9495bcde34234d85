// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/mlbatch/mlbatch/test/wording"
)

func TestTheCommands(t *testing.T) {
	from, to := t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(from, "train.py"), []byte("print(1)"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := told("files", from, to); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(filepath.Join(to, "train.py")); err != nil || string(text) != "print(1)" {
		t.Errorf("%q: %v", text, err)
	}
	wording.Wanted(t, told("fetch", "--secret="+from), "repoSecret has neither the key pat nor ca.crt")
	wording.Wanted(t, told("fetch", "--repository=https://127.0.0.1:1/a/b", "--tree=main", "--to="+to), "cannot fetch https://127.0.0.1:1/a/b")
}

func told(args ...string) error {
	c := command()
	c.SetArgs(args)
	return c.Execute()
}
