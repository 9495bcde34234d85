// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/mlbatch/mlbatch/tools/localcluster/plan"
)

// Pauses before a program is started again. They grow, so that one that fails at
// once fills no log and takes no processor, until one has lasted.
const (
	firstPause   = time.Second
	longestPause = 8 * time.Second
	lasting      = time.Minute
)

// life is a planned program, through all the times that it is started.
type life struct {
	program plan.Program
	// ctx ends when the program is not wanted any more.
	ctx  context.Context
	end  context.CancelFunc
	over chan struct{} // closed when it has ended for good
}

func newLife(program plan.Program) *life {
	ctx, end := context.WithCancel(context.Background())
	return &life{program: program, ctx: ctx, end: end, over: make(chan struct{})}
}

// finish ends the program and returns when it has ended.
func (l *life) finish() {
	l.end()
	<-l.over
}

// keep starts a program again whenever it ends by itself.
func (s *supervisor) keep(l *life, p *process) {
	defer close(l.over)
	var pause time.Duration
	for {
		began := time.Now()
		why, wanted := s.live(l, p)
		if !wanted {
			return
		}
		for pause = nextPause(pause, time.Since(began)); ; pause = nextPause(pause, 0) {
			if l.ctx.Err() != nil {
				return // it was about to end when it was ended
			}
			fmt.Fprintf(os.Stderr, "%s %s\n", l.program.Name, why)
			s.report.ended(l.program.Name, why)
			if !s.rest(l.ctx, pause) {
				return
			}
			var err error
			if p, err = s.start(l); err == nil {
				break
			}
			why = "cannot be started: " + err.Error()
		}
	}
}

// live follows a process and says why it ended, unless it was not wanted any more.
func (s *supervisor) live(l *life, p *process) (why string, wanted bool) {
	ctx, ended := context.WithCancel(l.ctx)
	defer ended()
	go func() {
		if await(ctx, l.program.Ready) == nil {
			s.report.recovered(ctx, l.program.Name)
		}
	}()
	select {
	case status := <-p.end:
		return ending(status), true
	case <-l.ctx.Done():
		p.stop()
		return "", false
	}
}

func ending(status syscall.WaitStatus) string {
	if status.Signaled() {
		return "was ended by the signal " + status.Signal().String()
	}
	return fmt.Sprintf("ended with exit status %d", status.ExitStatus())
}

func nextPause(last, lived time.Duration) time.Duration {
	if last == 0 || lived >= lasting {
		return firstPause
	}
	return min(2*last, longestPause)
}

func rest(ctx context.Context, pause time.Duration) bool {
	select {
	case <-time.After(pause):
		return true
	case <-ctx.Done():
		return false
	}
}
