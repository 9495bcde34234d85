// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// logFile is committed, so that continuous integration knows which lanes are due.
const logFile = "docs/evidence/lanes.log"

// repo is the folder of a checkout.
type repo string

func (r repo) git(args ...string) (string, error) {
	out, err := exec.Command("git", append([]string{"-C", string(r)}, args...)...).Output()
	if err != nil {
		var failed *exec.ExitError
		if errors.As(err, &failed) {
			err = fmt.Errorf("%w: %s", err, strings.TrimSpace(string(failed.Stderr)))
		}
		return "", fmt.Errorf("cannot run git %s: %w", args[0], err)
	}
	return strings.TrimSpace(string(out)), nil
}

func (r repo) head() (string, error) { return r.git("rev-parse", "--short=12", "HEAD") }

// clean fails if the checkout differs from the commit, except for the logs of this program.
func (r repo) clean() error {
	dirty, err := r.git("status", "--porcelain", "--", ".", ":(exclude)"+logFile, ":(exclude)"+flakesFile)
	if err == nil && dirty != "" {
		err = fmt.Errorf("cannot record a lane for a commit while there are changes: commit them first\n%s", dirty)
	}
	return err
}

// changed returns the lanes whose command or inputs have changed since they were recorded. What cannot be compared
// counts as changed, as when a shallow clone lacks the commit.
func (r repo) changed(lanes []lane, log map[string]record) (map[string]bool, error) {
	changed := map[string]bool{}
	tree, err := r.tree()
	for _, l := range lanes {
		changed[l.name] = err != nil || r.differs(tree, l, log[l.name].commit)
	}
	return changed, err
}

func (r repo) differs(t *tree, l lane, commit string) bool {
	if commit == "" {
		return true
	}
	files, err1 := r.git("diff", "--name-only", "--no-renames", "-z", commit+"..HEAD")
	before, err2 := r.commandAt(commit, l.name)
	now, err3 := r.command(l.name)
	if errors.Join(err1, err2, err3) != nil || before != now {
		return true
	}
	return slices.ContainsFunc(strings.Split(files, "\x00"), t.inputsOf(now, l.more).reads)
}

// command returns what make would run for a target.
func (r repo) command(target string) (string, error) { return r.commandIn("Makefile", target) }

// commandAt is the same for an older Makefile.
func (r repo) commandAt(commit, target string) (string, error) {
	content, err := r.git("show", commit+":Makefile")
	if err != nil {
		return "", err
	}
	file, err := os.CreateTemp("", "Makefile-")
	if err != nil {
		return "", err
	}
	defer os.Remove(file.Name())
	_, err = file.WriteString(content + "\n")
	if err := errors.Join(err, file.Close()); err != nil {
		return "", err
	}
	return r.commandIn(file.Name(), target)
}

func (r repo) commandIn(makefile, target string) (string, error) {
	cmd := exec.Command("make", "-C", string(r), "-f", makefile, "--no-print-directory", "-n", target)
	cmd.Env = append(os.Environ(), "MAKEFLAGS=", "MAKELEVEL=")
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("make -n %s: %w\n%s", target, err, out)
	}
	return string(out), nil
}

func (r repo) readLog() (map[string]record, error) {
	content, err := os.ReadFile(filepath.Join(string(r), logFile))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	return parseLog(logFile, string(content))
}

// record adds a lane to the log.
func (r repo) record(lanes []lane, name string, rec record) error {
	log, err := r.readLog() // another run may have changed it
	if err != nil {
		return err
	}
	log[name] = rec
	return os.WriteFile(filepath.Join(string(r), logFile), []byte(formatLog(log, lanes)), 0o644)
}
