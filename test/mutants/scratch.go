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

// scratch is git with an index and new objects in a temporary folder, so that nothing of
// what it makes is left in the repository.
type scratch struct {
	root, folder string
	env          []string
}

// newScratch has to be removed even where there is an error.
func newScratch(ctx context.Context, root string) (scratch, error) {
	folder, err := os.MkdirTemp("", "mutants-")
	if err != nil {
		return scratch{}, err
	}
	s := scratch{root: root, folder: folder, env: os.Environ()}
	objects, err := s.git(ctx, "rev-parse", "--path-format=absolute", "--git-path", "objects")
	if err != nil {
		return s, err
	}
	own := filepath.Join(folder, "objects")
	s.env = append(s.env,
		"GIT_INDEX_FILE="+filepath.Join(folder, "index"),
		"GIT_OBJECT_DIRECTORY="+own, "GIT_ALTERNATE_OBJECT_DIRECTORIES="+objects,
		"GIT_AUTHOR_NAME=mutants", "GIT_AUTHOR_EMAIL=mutants@localhost",
		"GIT_COMMITTER_NAME=mutants", "GIT_COMMITTER_EMAIL=mutants@localhost")
	return s, os.Mkdir(own, 0o755)
}

func (s scratch) remove() {
	if s.folder != "" {
		_ = os.RemoveAll(s.folder) // what is left is in the temporary folder
	}
}

// git returns what a command prints, without the last end of line.
func (s scratch) git(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", append([]string{"-C", s.root}, args...)...)
	cmd.Env = s.env
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if err != nil {
		err = fmt.Errorf("git %s: %w: %s", args[0], err, strings.TrimSpace(stderr.String()))
	}
	return strings.TrimSuffix(stdout.String(), "\n"), err
}

// answersNo tells git's "no" (there is a conflict, nothing was found) from its failures.
func answersNo(err error) bool {
	var exit *exec.ExitError
	return errors.As(err, &exit) && exit.ExitCode() == 1
}

// workingTree is a commit on HEAD of all that is or could be committed.
func (s scratch) workingTree(ctx context.Context) (commit string, err error) {
	if _, err := s.git(ctx, "read-tree", "HEAD"); err != nil {
		return "", err
	}
	if _, err := s.git(ctx, "add", "--all"); err != nil {
		return "", err
	}
	tree, err := s.git(ctx, "write-tree")
	if err != nil {
		return "", err
	}
	return s.commit(ctx, tree, "HEAD")
}

func (s scratch) commit(ctx context.Context, tree, parent string) (string, error) {
	return s.git(ctx, "commit-tree", "-p", parent, "-m", "for mutants -refresh", tree)
}

// patched is the tree of a commit with a patch on it; empty where the patch does not apply.
func (s scratch) patched(ctx context.Context, commit, file string) (tree string, err error) {
	if _, err := s.git(ctx, "read-tree", commit); err != nil {
		return "", err
	}
	patch, err := filepath.Abs(file)
	if err != nil {
		return "", err
	}
	_, err = s.git(ctx, "apply", "--cached", patch)
	if answersNo(err) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("%s: %w", file, err)
	}
	return s.git(ctx, "write-tree")
}

// merged carries what differs between base and its child, a tree, over to another commit
// that comes after base, and follows what was renamed on the way.
func (s scratch) merged(ctx context.Context, base, tree, onto string) (result string, conflicts []string, err error) {
	child, err := s.commit(ctx, tree, base)
	if err != nil {
		return "", nil, err
	}
	// Both come from base, so that git finds it as their merge base.
	out, err := s.git(ctx, "merge-tree", "--write-tree", "--name-only", "--no-messages", onto, child)
	lines := strings.Split(out, "\n")
	if answersNo(err) {
		return "", lines[1:], nil
	}
	return lines[0], nil, err
}

// difference is a patch without the lines that change whenever the file does.
func (s scratch) difference(ctx context.Context, from, to string) (string, error) {
	out, err := s.git(ctx, "diff-tree", "-r", "-p", "--no-renames", "--no-ext-diff", "--no-textconv", "--no-color",
		"--unified=3", "--inter-hunk-context=0", "--diff-algorithm=myers", "--indent-heuristic", "--src-prefix=a/", "--dst-prefix=b/", from, to)
	if err != nil || out == "" {
		return "", err
	}
	var patch strings.Builder
	for line := range strings.Lines(out + "\n") {
		// Lines of files begin with a space, a sign or a backslash.
		if !strings.HasPrefix(line, "index ") {
			patch.WriteString(line)
		}
	}
	return patch.String(), nil
}
