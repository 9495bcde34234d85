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

// update gives the keeper of a running cluster the plan that this checkout would
// start a new one with. The keeper then starts again what differs; the data stays.
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
	if err := c.adopt(b); err != nil {
		return err
	}
	next, err := c.plan(b.bins, b.tools)
	if err != nil {
		return err
	}
	return c.hand(runs, next)
}

// changeable refuses what a running cluster cannot become, while none of its files
// has changed. The keeper cannot be another one: all else would end with it.
func (c *Cluster) changeable(runs plan.Plan, b built) error {
	if err := c.sameKeeper(b); err != nil {
		return err
	}
	if !same(frame(runs), c.frame()) {
		return c.cannotChange("has other mounts or another network than this checkout would give it")
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

// adopt puts what was built of this repository where that of the running cluster
// is.
func (c *Cluster) adopt(b built) error {
	files, err := filepath.Glob(filepath.Join(b.dir, "bin", "*"))
	if err != nil {
		return err
	}
	for _, file := range append(files, filepath.Join(b.dir, ownImagesFile)) {
		name, _ := filepath.Rel(b.dir, file) // it is below
		if err := os.Rename(file, filepath.Join(c.Dir(), name)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("cannot change the cluster's files: %w", err)
		}
	}
	return nil
}

func (c *Cluster) cannotChange(why string) error {
	return fmt.Errorf("cluster %q %s, which cannot be changed while it runs; end it first with: localcluster down --name=%s",
		c.config.Name, why, c.config.Name)
}

// hand tells the keeper of another plan, if it is one or if the keeper did not
// bring the present one about.
func (c *Cluster) hand(runs, next plan.Plan) error {
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
	// A command that is killed here has said nothing to the keeper, and the next
	// one sees that by the revision.
	next.Revision = runs.Revision + 1
	if err := plan.Write(c.Dir(), plan.File, next); err != nil {
		return err
	}
	keeper, alive := c.host.proc.keeperOf(c.Dir())
	if !alive { // its pid may be another process's by now
		return errors.New("the cluster's keeper has ended; run the command again")
	}
	if err := syscall.Kill(keeper.PID, syscall.SIGHUP); err != nil {
		return fmt.Errorf("cannot tell the cluster's keeper, process %d, of another plan: %w", keeper.PID, err)
	}
	return nil
}

// differences says which programs change, a line each.
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
			lines = append(lines, program.Name+" is not needed any more")
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

// frame is what a keeper makes once, of a plan.
func frame(p plan.Plan) plan.Plan {
	p.Programs, p.Revision = nil, 0
	return p
}

// same compares what is written down: one was read, the other was not.
func same(a, b any) bool {
	one, err1 := json.Marshal(a)
	other, err2 := json.Marshal(b)
	return err1 == nil && err2 == nil && bytes.Equal(one, other)
}
