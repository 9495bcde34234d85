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

// supervisor runs the programs of a plan and restarts those that exit.
type supervisor struct {
	dir    string
	report *reporter
	reaper *reaper
	// services are the programs that run or wait for a restart.
	services map[string]*service
	// sleep waits before a restart. It returns false if the context is done first.
	sleep func(context.Context, time.Duration) bool
}

func newSupervisor(dir string, report *reporter) *supervisor {
	return &supervisor{dir: dir, report: report, reaper: newReaper(), services: map[string]*service{}, sleep: sleep}
}

// follow starts the programs of a plan in order, each when the one before is ready.
// Programs that already run as planned keep running. If a program does not become ready,
// the error has the end of its log.
func (s *supervisor) follow(p plan.Plan) error {
	s.report.following(p.Revision)
	s.stopOthers(p.Programs)
	for _, program := range p.Programs {
		s.report.waiting(program.Name)
		if err := s.ensure(program); err != nil {
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

// followNew follows the plan that is in the plan file now.
func (s *supervisor) followNew() error {
	var p plan.Plan
	if err := plan.Read(s.dir, plan.File, &p); err != nil {
		return err
	}
	return s.follow(p)
}

// stopOthers stops the programs that are no longer planned.
func (s *supervisor) stopOthers(planned []plan.Program) {
	for name, svc := range s.services {
		if !slices.ContainsFunc(planned, func(p plan.Program) bool { return p.Name == name }) {
			svc.stop()
			delete(s.services, name)
			s.report.forget(name)
		}
	}
}

// ensure makes a program run as planned.
func (s *supervisor) ensure(program plan.Program) error {
	if svc, runs := s.services[program.Name]; runs {
		if reflect.DeepEqual(svc.program, program) {
			return nil
		}
		svc.stop()
		delete(s.services, program.Name)
	}
	svc := newService(program)
	p, err := s.start(svc)
	if err != nil {
		return err
	}
	s.services[program.Name] = svc
	go s.supervise(svc, p)
	return nil
}

// start runs a program after its Before probe succeeds.
func (s *supervisor) start(svc *service) (*process, error) {
	ctx, cancel := context.WithTimeout(svc.ctx, svc.program.Timeout)
	defer cancel()
	if err := await(ctx, svc.program.Before); err != nil {
		return nil, err
	}
	log, err := os.OpenFile(s.logPath(svc.program), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	null, err := os.Open(os.DevNull)
	if err != nil {
		return nil, err
	}
	defer null.Close()
	return s.reaper.start(svc.program.Path, append([]string{svc.program.Path}, svc.program.Args...), &syscall.ProcAttr{
		Dir:   s.dir,
		Env:   svc.program.Env,
		Files: []uintptr{null.Fd(), log.Fd(), log.Fd()},
		Sys:   attributes(svc.program),
	})
}

// attributes returns the attributes with which a program is started.
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
