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

// The backoff before a program is restarted. It grows, so that a program that fails at once
// wastes no processor and fills no log. It is reset once the program ran for stableAfter.
const (
	firstBackoff   = time.Second
	longestBackoff = 8 * time.Second
	stableAfter    = time.Minute
)

// service is a planned program with all its restarts.
type service struct {
	program plan.Program
	// ctx is done when the program is no longer wanted.
	ctx     context.Context
	cancel  context.CancelFunc
	stopped chan struct{} // closed when the program is not started again
}

func newService(program plan.Program) *service {
	ctx, cancel := context.WithCancel(context.Background())
	return &service{program: program, ctx: ctx, cancel: cancel, stopped: make(chan struct{})}
}

// stop stops the program and returns when it has exited.
func (svc *service) stop() {
	svc.cancel()
	<-svc.stopped
}

// supervise restarts a program whenever it exits by itself.
func (s *supervisor) supervise(svc *service, p *process) {
	defer close(svc.stopped)
	var backoff time.Duration
	for {
		began := time.Now()
		why, wanted := s.await(svc, p)
		if !wanted {
			return
		}
		for backoff = nextBackoff(backoff, time.Since(began)); ; backoff = nextBackoff(backoff, 0) {
			if svc.ctx.Err() != nil {
				return // it exited by itself just before it was stopped
			}
			fmt.Fprintf(os.Stderr, "%s %s\n", svc.program.Name, why)
			s.report.ended(svc.program.Name, why)
			if !s.sleep(svc.ctx, backoff) {
				return
			}
			var err error
			if p, err = s.start(svc); err == nil {
				break
			}
			why = "cannot be started: " + err.Error()
		}
	}
}

// await returns why a process exited, or stops it when it is no longer wanted.
func (s *supervisor) await(svc *service, p *process) (why string, wanted bool) {
	ctx, ended := context.WithCancel(svc.ctx)
	defer ended()
	go func() {
		if await(ctx, svc.program.Ready) == nil {
			s.report.recovered(ctx, svc.program.Name)
		}
	}()
	select {
	case status := <-p.end:
		return ending(status), true
	case <-svc.ctx.Done():
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

func nextBackoff(last, ran time.Duration) time.Duration {
	if last == 0 || ran >= stableAfter {
		return firstBackoff
	}
	return min(2*last, longestBackoff)
}

func sleep(ctx context.Context, duration time.Duration) bool {
	select {
	case <-time.After(duration):
		return true
	case <-ctx.Done():
		return false
	}
}
