// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/mlbatch/mlbatch/tools/localcluster/plan"
)

// restartPause keeps a program that fails at once from filling the log.
const restartPause = time.Second

// supervisor runs the programs of a plan and restarts those that end.
type supervisor struct {
	plan   plan.Plan
	report *reporter
	reaper *reaper
	// pause is taken before a program is started again.
	pause func()
}

func newSupervisor(p plan.Plan, report *reporter) *supervisor {
	return &supervisor{
		plan: p, report: report, reaper: newReaper(),
		pause: func() { time.Sleep(restartPause) },
	}
}

// startAll starts the programs one after the other, each when the one before
// is ready, and explains itself with the program's own words if one is not.
func (s *supervisor) startAll() error {
	for _, program := range s.plan.Programs {
		s.report.waiting(program.Name)
		end, err := s.start(program)
		if err != nil {
			return fmt.Errorf("cannot start %s: %w", program.Name, err)
		}
		go s.keep(program, end)
		if err := await(program.Ready, program.Timeout); err != nil {
			return fmt.Errorf("%s did not become ready in %s (%w); the last lines of its log %s:\n%s",
				program.Name, program.Timeout, err, s.logPath(program), tail(s.logPath(program), 8))
		}
	}
	return nil
}

// keep starts a program again whenever it ends, for ever.
func (s *supervisor) keep(program plan.Program, end <-chan syscall.WaitStatus) {
	for {
		if end != nil {
			status := <-end
			fmt.Fprintf(os.Stderr, "%s ended with status %d\n", program.Name, status.ExitStatus())
		}
		s.report.restarted(program.Name)
		s.pause()
		var err error
		if end, err = s.start(program); err != nil {
			fmt.Fprintf(os.Stderr, "cannot start %s: %v\n", program.Name, err)
		}
	}
}

func (s *supervisor) start(program plan.Program) (<-chan syscall.WaitStatus, error) {
	log, err := os.OpenFile(s.logPath(program), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	null, err := os.Open(os.DevNull)
	if err != nil {
		return nil, err
	}
	defer null.Close()
	return s.reaper.start(program.Path, append([]string{program.Path}, program.Args...), &syscall.ProcAttr{
		Dir:   s.plan.Dir,
		Env:   program.Env,
		Files: []uintptr{null.Fd(), log.Fd(), log.Fd()},
		Sys:   &syscall.SysProcAttr{Setsid: true},
	})
}

func (s *supervisor) logPath(program plan.Program) string {
	return filepath.Join(s.plan.Dir, plan.LogDir, program.Name+".log")
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
