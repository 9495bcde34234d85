// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// tree is a folder with a copy of the repository.
type tree string

// copies makes n copies of everything that is or could be committed. They must be removed even
// if there is an error.
func copies(ctx context.Context, root string, n int) (trees []tree, remove func(), err error) {
	remove = func() {
		for _, t := range trees {
			_ = os.RemoveAll(string(t)) // anything left is in the temporary folder
		}
	}
	list, err := exec.CommandContext(ctx, "git", "-C", root, "ls-files", "-z", "--cached", "--others", "--exclude-standard").Output()
	if err != nil {
		return nil, remove, fmt.Errorf("cannot list the files of the repository: %w", err)
	}
	files := strings.Split(strings.TrimRight(string(list), "\x00"), "\x00")
	for range n {
		dir, err := os.MkdirTemp("", "mutants-")
		if err != nil {
			return trees, remove, err
		}
		trees = append(trees, tree(dir))
		for _, file := range files {
			if err := copyFile(filepath.Join(root, file), filepath.Join(dir, file)); err != nil {
				return trees, remove, err
			}
		}
	}
	return trees, remove, nil
}

func copyFile(from, to string) error {
	info, err := os.Stat(from)
	if errors.Is(err, os.ErrNotExist) {
		return nil // deleted, but not committed yet
	}
	if err != nil {
		return err
	}
	content, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	return os.WriteFile(to, content, info.Mode().Perm())
}

// apply applies a patch. Git must match it exactly: a patch with changed context is outdated.
func (t tree) apply(ctx context.Context, file string, options ...string) error {
	patch, err := os.Open(file)
	if err != nil {
		return err
	}
	defer patch.Close()
	cmd := exec.CommandContext(ctx, "git", append([]string{"apply"}, options...)...)
	cmd.Dir, cmd.Stdin = string(t), patch
	// Ignore any repository around the temporary folder.
	cmd.Env = append(os.Environ(), "GIT_CEILING_DIRECTORIES="+filepath.Dir(string(t)))
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%w: %s", err, strings.TrimSpace(stderr.String()))
	}
	return nil
}
