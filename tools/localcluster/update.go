// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/mlbatch/mlbatch/tools/localcluster/plan"
)

// update gives a running keeper the plan of this checkout. The keeper restarts programs
// that differ; the data stays.
func (c *Cluster) update(ctx context.Context) error {
	b, err := c.buildAll(ctx)
	if err != nil {
		return err
	}
	defer os.RemoveAll(b.dir)
	var runs plan.Plan
	if err := plan.Read(c.Dir(), plan.File, &runs); err != nil {
		return err
	}
	if err := c.changeable(runs, b); err != nil {
		return err
	}
	if err := c.installBuilt(b); err != nil {
		return err
	}
	next, err := c.plan(b.bins, b.tools)
	if err != nil {
		return err
	}
	return c.replan(runs, next)
}

// changeable returns an error, before any file changes, if a running cluster cannot be updated.
// The keeper cannot be replaced, because everything else would end with it.
func (c *Cluster) changeable(runs plan.Plan, b built) error {
	if err := c.sameKeeper(b); err != nil {
		return err
	}
	if !same(frame(runs), c.frame()) {
		return c.cannotChange("has other mounts or another network than this checkout")
	}
	return nil
}

func (c *Cluster) sameKeeper(b built) error {
	runs, err1 := os.ReadFile(keeperProgram(c.Dir()))
	next, err2 := os.ReadFile(keeperProgram(b.dir))
	if err := errors.Join(err1, err2); err != nil {
		return fmt.Errorf("cannot compare the cluster's keeper with that of this checkout: %w", err)
	}
	if !bytes.Equal(runs, next) {
		return c.cannotChange("has another keeper than this checkout")
	}
	return nil
}

// installBuilt replaces the running cluster's programs of this repository.
func (c *Cluster) installBuilt(b built) error {
	files, err := filepath.Glob(filepath.Join(b.dir, "bin", "*"))
	if err != nil {
		return err
	}
	for _, file := range append(files, filepath.Join(b.dir, ownImagesFile)) {
		name, _ := filepath.Rel(b.dir, file) // cannot fail: it is below
		if err := os.Rename(file, filepath.Join(c.Dir(), name)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("cannot replace the cluster's files: %w", err)
		}
	}
	return nil
}

func (c *Cluster) cannotChange(why string) error {
	return fmt.Errorf("cluster %q %s, and this cannot change while it runs; remove it first with: localcluster down --name=%s",
		c.config.Name, why, c.config.Name)
}

// replan gives the keeper a new plan, if it differs or if the keeper could not carry out
// the current one.
func (c *Cluster) replan(runs, next plan.Plan) error {
	var status plan.Status
	if err := plan.Read(c.Dir(), plan.StatusFile, &status); err != nil {
		return err
	}
	changes := differences(runs.Programs, next.Programs)
	if len(changes) == 0 && status.Error == "" && status.Revision == runs.Revision {
		return nil
	}
	for _, change := range changes {
		fmt.Fprintln(c.progress, change)
	}
	// If this command is killed before the signal, the next one sees from the revision
	// that the keeper missed the plan.
	next.Revision = runs.Revision + 1
	if err := plan.Write(c.Dir(), plan.File, next); err != nil {
		return err
	}
	keeper, alive := c.host.proc.keeperOf(c.Dir())
	if !alive { // another process may have its pid by now
		return errors.New("the cluster's keeper has exited; run the command again")
	}
	if err := syscall.Kill(keeper.PID, syscall.SIGHUP); err != nil {
		return fmt.Errorf("cannot signal a new plan to the cluster's keeper, process %d: %w", keeper.PID, err)
	}
	return nil
}

// differences lists the programs that change, a line each.
func differences(runs, next []plan.Program) []string {
	var lines []string
	for _, program := range next {
		i := slices.IndexFunc(runs, func(p plan.Program) bool { return p.Name == program.Name })
		if i < 0 {
			lines = append(lines, program.Name+" is new")
		} else if !same(runs[i], program) {
			lines = append(lines, program.Name+" "+difference(runs[i], program))
		}
	}
	for _, program := range runs {
		if !slices.ContainsFunc(next, func(p plan.Program) bool { return p.Name == program.Name }) {
			lines = append(lines, program.Name+" is no longer needed")
		}
	}
	return lines
}

func difference(runs, next plan.Program) string {
	switch {
	case runs.Version != next.Version:
		return runs.Version + " → " + next.Version
	case runs.Path != next.Path:
		return next.Version + " is another build"
	default:
		return "has other settings"
	}
}

// frame returns a plan without the fields that may change.
func frame(p plan.Plan) plan.Plan {
	p.Programs, p.Revision = nil, 0
	return p
}

// same compares values as JSON: one was read from a file, the other was not.
func same(a, b any) bool {
	one, err1 := json.Marshal(a)
	other, err2 := json.Marshal(b)
	return err1 == nil && err2 == nil && bytes.Equal(one, other)
}
