// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// movedTest returns the command of a test, with the folder where the test is now.
func (s scratch) movedTest(ctx context.Context, test, now string) (string, error) {
	folder := folderOf(test)
	there, err := s.foldersOf(ctx, now, functionOf(test))
	if err != nil {
		return "", err
	}
	if slices.Contains(there, folder) {
		return test, nil
	}
	if len(there) == 1 {
		return s.commandIn(ctx, test, there[0], now)
	}
	moved := folder
	for moved != "" && !slices.Contains(there, moved) {
		if moved, err = s.movedFolder(ctx, moved, now); err != nil {
			return "", err
		}
	}
	if moved == "" {
		return "", leftError(fmt.Sprintf("its test is no longer in %s, and not in one other folder", folder))
	}
	return s.commandIn(ctx, test, moved, now)
}

// functionOf returns a pattern for the function that a test command names, or for all tests.
func functionOf(test string) string {
	found := regexp.MustCompile(`((?:Test|Fuzz)\w+)(\$?)`).FindStringSubmatch(test)
	switch {
	case found == nil:
		return "Test"
	case found[2] == "$":
		return found[1] + `\(`
	}
	return found[1]
}

// folderOf returns the folder of a mutant's test, which may be in another module.
func folderOf(test string) string {
	args := arguments(test)
	module, i := "", slices.Index(args, "-C")
	if i >= 0 {
		module = args[i+1]
	}
	return path.Join(module, args[packageAt(args)])
}

// packageAt returns the index of the package in the arguments of a test.
func packageAt(args []string) int {
	return slices.IndexFunc(args, func(arg string) bool { return arg == "." || strings.HasPrefix(arg, "./") })
}

// foldersOf returns the folders with a test function of that name.
func (s scratch) foldersOf(ctx context.Context, commit, function string) ([]string, error) {
	out, err := s.git(ctx, "grep", "-l", "-E", "^func "+function, commit, "--", "*_test.go")
	if err != nil && !answersNo(err) {
		return nil, err
	}
	var folders []string
	for _, file := range strings.Fields(out) {
		folders = append(folders, path.Dir(strings.TrimPrefix(file, commit+":")))
	}
	slices.Sort(folders)
	return slices.Compact(folders), nil
}

// movedFolder returns the folder that most files of an old folder are in now, or "" if none is
// left.
func (s scratch) movedFolder(ctx context.Context, folder, now string) (string, error) {
	// The last commit that touched the folder is the one that moved it.
	last, err := s.git(ctx, "rev-list", "--max-count="+strconv.Itoa(depth), now, "--", folder)
	if err != nil || last == "" {
		return "", err
	}
	moving, _, _ := strings.Cut(last, "\n")
	out, err := s.git(ctx, "diff-tree", "-r", "-M", "-l0", "--diff-filter=R", "--name-status", moving+"^", moving)
	if err != nil {
		return "", err
	}
	count, most := map[string]int{}, ""
	for line := range strings.Lines(out) {
		cells := strings.Split(strings.TrimSpace(line), "\t")
		if len(cells) != 3 || path.Dir(cells[1]) != folder {
			continue
		}
		to := path.Dir(cells[2])
		if count[to]++; count[to] > count[most] {
			most = to
		}
	}
	return most, nil
}

// commandIn returns the command of a test with another folder and that folder's module.
func (s scratch) commandIn(ctx context.Context, test, folder, now string) (string, error) {
	module := folder
	for module != "." {
		out, err := s.git(ctx, "ls-tree", "--name-only", now, path.Join(module, "go.mod"))
		if err != nil {
			return "", err
		}
		if out != "" {
			break
		}
		module = path.Dir(module)
	}
	fields := strings.Fields(strings.TrimPrefix(test, goTest))
	if fields[0] == "-C" {
		fields = fields[2:]
	}
	fields[packageAt(fields)] = "./" + strings.TrimPrefix(strings.TrimPrefix(folder, module), "/")
	if module != "." {
		fields = append([]string{"-C", module}, fields...)
	}
	return goTest + strings.Join(fields, " "), nil
}
