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

// clean fails if the checkout differs from the commit, except for the log itself.
func (r repo) clean() error {
	dirty, err := r.git("status", "--porcelain", "--", ".", ":(exclude)"+logFile)
	if err == nil && dirty != "" {
		err = fmt.Errorf("cannot record a lane for a commit while there are changes: commit them first\n%s", dirty)
	}
	return err
}

// changed returns the lanes whose inputs have changed since they were recorded.
func (r repo) changed(lanes []lane, log map[string]record) map[string]bool {
	changed := map[string]bool{}
	for _, l := range lanes {
		files, err := r.git("diff", "--name-only", log[l.name].commit+"..HEAD")
		// If the commit is missing, as in a shallow clone, the lane is due.
		changed[l.name] = log[l.name].commit == "" || err != nil || slices.ContainsFunc(strings.Split(files, "\n"), l.reads)
	}
	return changed
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
