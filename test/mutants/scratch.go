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

// scratch is git with its index and new objects in a temporary folder, so that it leaves
// nothing in the repository.
type scratch struct {
	root, folder string
	env          []string
}

// newScratch returns a scratch that must be removed even if there is an error.
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
		_ = os.RemoveAll(s.folder) // anything left is in the temporary folder
	}
}

// git returns the output of a git command without the final newline.
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

// answersNo distinguishes a negative answer of git (a conflict, nothing found) from a failure.
func answersNo(err error) bool {
	var exit *exec.ExitError
	return errors.As(err, &exit) && exit.ExitCode() == 1
}

// workingTree returns a commit on HEAD with everything that is or could be committed.
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

// patched returns the tree of a commit with a patch applied, or "" if the patch does not apply.
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

// merged applies the difference between base and tree to a later commit, and follows renames.
func (s scratch) merged(ctx context.Context, base, tree, onto string) (result string, conflicts []string, err error) {
	child, err := s.commit(ctx, tree, base)
	if err != nil {
		return "", nil, err
	}
	// Both descend from base, so that git uses it as the merge base.
	out, err := s.git(ctx, "merge-tree", "--write-tree", "--name-only", "--no-messages", onto, child)
	lines := strings.Split(out, "\n")
	if answersNo(err) {
		return "", lines[1:], nil
	}
	return lines[0], nil, err
}

// difference returns a patch without the lines that change with every change of the file.
func (s scratch) difference(ctx context.Context, from, to string) (string, error) {
	out, err := s.git(ctx, "diff-tree", "-r", "-p", "--no-renames", "--no-ext-diff", "--no-textconv", "--no-color",
		"--unified=3", "--inter-hunk-context=0", "--diff-algorithm=myers", "--indent-heuristic", "--src-prefix=a/", "--dst-prefix=b/", from, to)
	if err != nil || out == "" {
		return "", err
	}
	var patch strings.Builder
	for line := range strings.Lines(out + "\n") {
		// Lines of content start with a space, a sign or a backslash.
		if !strings.HasPrefix(line, "index ") {
			patch.WriteString(line)
		}
	}
	return patch.String(), nil
}
