// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func checkout(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		if err := write(filepath.Join(root, name), []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

var fine = map[string]string{
	"README.md": "# Home\n", "docs/README.md": "# All\n\n## For all\n\n- [Home](../README.md)\n", "docs/images/icon.svg": "<svg/>",
}

func TestAnEarlierSiteIsReplaced(t *testing.T) {
	root, out := checkout(t, fine), filepath.Join(t.TempDir(), "dist", "site")
	for range 2 {
		if err := run(root, out, "", t.Output()); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(filepath.Join(out, "gone.html")); err == nil {
			t.Error("a page of the earlier site stays")
		}
		if err := write(filepath.Join(out, "gone.html"), nil); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Stat(filepath.Join(out, "docs", "index.html")); err != nil {
		t.Error(err)
	}
}

func TestAFolderOfOthersStays(t *testing.T) {
	out := checkout(t, map[string]string{"thesis.txt": "years of work"})
	err := run(checkout(t, fine), out, "", t.Output())
	if err == nil || !strings.Contains(err.Error(), "name another folder with -out") {
		t.Errorf("got %v", err)
	}
	if _, err := os.Stat(filepath.Join(out, "thesis.txt")); err != nil {
		t.Error(err)
	}
}

func TestAMistakeLeavesTheEarlierSite(t *testing.T) {
	out := filepath.Join(t.TempDir(), "site")
	if err := run(checkout(t, fine), out, "", t.Output()); err != nil {
		t.Fatal(err)
	}
	root := checkout(t, fine)
	if err := write(filepath.Join(root, "README.md"), []byte("# Home\n\n[a](b.md)\n")); err != nil {
		t.Fatal(err)
	}
	if err := run(root, out, "", t.Output()); err == nil || !strings.Contains(err.Error(), "README.md:3: links to b.md") {
		t.Errorf("got %v", err)
	}
	if _, err := os.Stat(filepath.Join(out, "index.html")); err != nil {
		t.Error(err)
	}
}

func TestPagesAreWrittenForTheSite(t *testing.T) {
	root, out := checkout(t, fine), filepath.Join(t.TempDir(), "site")
	if err := run(root, out, t.TempDir(), t.Output()); err == nil {
		t.Error("a folder without pages is accepted")
	}
	written := checkout(t, map[string]string{"commands.md": "# Commands\n\n[Home](../README.md)\n"})
	if err := run(root, out, written, t.Output()); err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join(out, "docs", "commands.html"))
	if err != nil || !strings.Contains(string(page), `href="../index.html">Home`) {
		t.Errorf("the page is %v: %s", err, page)
	}
	home, err := os.ReadFile(filepath.Join(out, "index.html"))
	if err != nil || !strings.Contains(string(home), `href="docs/commands.html">Commands`) {
		t.Errorf("the navigation of %v does not have it: %s", err, home)
	}
}
