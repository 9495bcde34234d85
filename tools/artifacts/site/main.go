// SPDX-License-Identifier: Apache-2.0

// Command site writes the documentation as a website into a folder. It is its own module, so that nobody who uses
// a package of MLBatch gets what reads Markdown, or what drives a browser.
//
//	go -C tools/artifacts/site run . -root ../../.. -out ../../../dist/site
//
// 'make site' also gives it the pages that tests write from the code.
package main

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/mlbatch/mlbatch/tools/artifacts/site/website"
)

func main() {
	root := flag.String("root", "../../..", "root of the repository")
	out := flag.String("out", "../../../dist/site", "folder to write the site into")
	written := flag.String("written", "", "folder with pages that are written for the site")
	flag.Parse()
	if err := run(*root, *out, *written, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "site:", err)
		os.Exit(1)
	}
}

func run(root, out, written string, progress io.Writer) error {
	pages := map[string][]byte{}
	if written != "" {
		var err error
		if pages, err = website.Written(os.DirFS(written)); err != nil || len(pages) == 0 {
			return fmt.Errorf("cannot read pages of %s: %w", written, cmp.Or(err, fs.ErrNotExist))
		}
	}
	files, err := website.Build(os.DirFS(root), pages)
	if err != nil {
		return fmt.Errorf("the pages have mistakes, and nothing was written:\n%w", err)
	}
	if err := empty(out); err != nil {
		return err
	}
	for name, content := range files {
		if err := write(filepath.Join(out, filepath.FromSlash(name)), content); err != nil {
			return fmt.Errorf("cannot write the site: %w", err)
		}
	}
	fmt.Fprintf(progress, "%s: %d files; open index.html\n", out, len(files))
	return nil
}

// ours is a file that only a site of this program has.
const ours = "assets/search-index.js"

// empty removes an earlier site, and nothing else: pages that are gone must not stay.
func empty(folder string) error {
	entries, err := os.ReadDir(folder)
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(entries) == 0 {
		return nil
	}
	if err != nil {
		return fmt.Errorf("cannot look into %s: %w", folder, err)
	}
	if _, err := os.Stat(filepath.Join(folder, ours)); err != nil {
		return fmt.Errorf("%s has files that are not of an earlier site: name another folder with -out, or empty it", folder)
	}
	if err := os.RemoveAll(folder); err != nil {
		return fmt.Errorf("cannot remove the earlier site: %w", err)
	}
	return nil
}

func write(file string, content []byte) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return os.WriteFile(file, content, 0o644)
}
