// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// depth is how many commits to search for one to which a patch applies.
const depth = 300

// refresh updates the patches that do not apply to the working tree as they are, and the
// folders of moved tests. It reports patches that it cannot update, and leaves them unchanged.
func refresh(ctx context.Context, root string, names []string, out io.Writer) error {
	mutants, err := load(filepath.Join(root, "test", "mutants"), names)
	if err != nil {
		return err
	}
	s, err := newScratch(ctx, root)
	defer s.remove()
	if err != nil {
		return fmt.Errorf("cannot prepare a place for git: %w", err)
	}
	now, err := s.workingTree(ctx)
	if err != nil {
		return fmt.Errorf("cannot read the working tree: %w", err)
	}
	bases, err := s.bases(ctx, now, mutants)
	if err != nil {
		return err
	}
	rewritten, left := 0, 0
	for _, m := range mutants {
		changed, err := s.refresh(ctx, m, bases[m.name], now)
		switch {
		case errors.As(err, new(leftError)):
			left++
			fmt.Fprintf(out, "left alone  %s: %v\n", m.name, err)
		case err != nil:
			return fmt.Errorf("%s: %w", m.file, err)
		case changed:
			rewritten++
			fmt.Fprintf(out, "rewritten   %s\n", m.name)
		}
	}
	fmt.Fprintf(out, "%d of %d patches were rewritten\n", rewritten, len(mutants))
	if left > 0 {
		return fmt.Errorf("%d of %d patches have to be made anew by hand", left, len(mutants))
	}
	return nil
}

// leftError says why a patch was left unchanged.
type leftError string

func (e leftError) Error() string { return string(e) }

// base is the newest commit to which a patch applies, and the resulting tree.
type base struct{ commit, tree string }

// bases returns the base of each mutant by name: the working tree if the patch applies to it,
// else the newest such commit in the history.
func (s scratch) bases(ctx context.Context, now string, mutants []mutant) (map[string]base, error) {
	history, err := s.git(ctx, "rev-list", "--max-count="+strconv.Itoa(depth), now)
	if err != nil {
		return nil, err
	}
	found := map[string]base{}
	for _, commit := range strings.Fields(history) {
		if len(found) == len(mutants) {
			break
		}
		for _, m := range mutants {
			if found[m.name].commit != "" {
				continue
			}
			tree, err := s.patched(ctx, commit, m.file)
			if err != nil {
				return nil, err
			}
			if tree != "" {
				found[m.name] = base{commit, tree}
			}
		}
	}
	return found, nil
}

// refresh rewrites one patch, and reports whether it has changed.
func (s scratch) refresh(ctx context.Context, m mutant, from base, now string) (changed bool, err error) {
	if from.commit == "" {
		return false, leftError(fmt.Sprintf("it applies to none of the last %d commits", depth))
	}
	tree := from.tree
	if from.commit != now {
		merged, conflicts, err := s.merged(ctx, from.commit, from.tree, now)
		if err != nil {
			return false, err
		}
		if len(conflicts) > 0 {
			return false, leftError("conflict in " + strings.Join(conflicts, ", "))
		}
		tree = merged
	}
	patch, err := s.difference(ctx, now, tree)
	if err != nil {
		return false, err
	}
	if patch == "" {
		return false, leftError("the code is as the patch would make it")
	}
	test, err := s.movedTest(ctx, m.test, now)
	if err != nil {
		return false, err
	}
	return rewrite(m, test, patch)
}

// rewrite keeps the header of a patch, except for the command of its test.
func rewrite(m mutant, test, patch string) (changed bool, err error) {
	before, err := os.ReadFile(m.file)
	if err != nil {
		return false, err
	}
	head, _, _ := strings.Cut(string(before), "diff --git ")
	after := strings.Replace(head, "Test: "+m.test, "Test: "+test, 1) + patch
	if after == string(before) {
		return false, nil
	}
	return true, os.WriteFile(m.file, []byte(after), 0o600)
}
