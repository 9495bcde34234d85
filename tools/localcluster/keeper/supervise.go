// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/mlbatch/mlbatch/tools/localcluster/plan"
)

// supervisor runs the programs of a plan and restarts those that end.
type supervisor struct {
	dir    string
	report *reporter
	reaper *reaper
	// lives are the programs that run, or are about to be started again.
	lives map[string]*life
	// rest passes the time before a program is started again. It is false if the
	// context ends first.
	rest func(context.Context, time.Duration) bool
}

func newSupervisor(dir string, report *reporter) *supervisor {
	return &supervisor{dir: dir, report: report, reaper: newReaper(), lives: map[string]*life{}, rest: rest}
}

// follow makes the programs those of a plan, one after the other, each when the
// one before is ready. Those that are as planned already stay as they are. If one
// does not become ready, it is explained in the program's own words.
func (s *supervisor) follow(p plan.Plan) error {
	s.report.following(p.Revision)
	s.endOthers(p.Programs)
	for _, program := range p.Programs {
		s.report.waiting(program.Name)
		if err := s.become(program); err != nil {
			return fmt.Errorf("cannot start %s: %w", program.Name, err)
		}
		if err := awaitFor(program.Timeout, program.Ready); err != nil {
			return fmt.Errorf("%s did not become ready within %s (%w); the last lines of its log %s:\n%s",
				program.Name, program.Timeout, err, s.logPath(program), tail(s.logPath(program), 8))
		}
	}
	s.report.ready()
	return nil
}

// followNew follows the plan that is on file now.
func (s *supervisor) followNew() error {
	var p plan.Plan
	if err := plan.Read(s.dir, plan.File, &p); err != nil {
		return err
	}
	return s.follow(p)
}

// endOthers ends the programs that are not planned any more.
func (s *supervisor) endOthers(planned []plan.Program) {
	for name, l := range s.lives {
		if !slices.ContainsFunc(planned, func(p plan.Program) bool { return p.Name == name }) {
			l.finish()
			delete(s.lives, name)
			s.report.gone(name)
		}
	}
}

// become sees to it that a program lives as it is planned.
func (s *supervisor) become(program plan.Program) error {
	if l, lives := s.lives[program.Name]; lives {
		if reflect.DeepEqual(l.program, program) {
			return nil
		}
		l.finish()
		delete(s.lives, program.Name)
	}
	l := newLife(program)
	p, err := s.start(l)
	if err != nil {
		return err
	}
	s.lives[program.Name] = l
	go s.keep(l, p)
	return nil
}

// start runs a program, once what has to come before it is done.
func (s *supervisor) start(l *life) (*process, error) {
	ctx, cancel := context.WithTimeout(l.ctx, l.program.Timeout)
	defer cancel()
	if err := await(ctx, l.program.Before); err != nil {
		return nil, err
	}
	log, err := os.OpenFile(s.logPath(l.program), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	null, err := os.Open(os.DevNull)
	if err != nil {
		return nil, err
	}
	defer null.Close()
	return s.reaper.start(l.program.Path, append([]string{l.program.Path}, l.program.Args...), &syscall.ProcAttr{
		Dir:   s.dir,
		Env:   l.program.Env,
		Files: []uintptr{null.Fd(), log.Fd(), log.Fd()},
		Sys:   attributes(l.program),
	})
}

// attributes are how the kernel starts a program.
func attributes(program plan.Program) *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Setsid: true}
	if program.PIDNamespace {
		attr.Cloneflags = syscall.CLONE_NEWPID
	}
	return attr
}

func (s *supervisor) logPath(program plan.Program) string {
	return filepath.Join(s.dir, plan.LogDir, program.Name+".log")
}

// tail returns the last lines of a file, indented.
func tail(path string, lines int) string {
	data, err := os.ReadFile(path)
	if err != nil {
		return "  (no log: " + err.Error() + ")"
	}
	all := strings.Split(strings.TrimSpace(string(data)), "\n")
	if len(all) > lines {
		all = all[len(all)-lines:]
	}
	return "  " + strings.Join(all, "\n  ")
}
