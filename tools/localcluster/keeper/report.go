// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/mlbatch/mlbatch/tools/localcluster/plan"
)

// reporter keeps the cluster's status file up to date.
type reporter struct {
	dir    string
	mu     sync.Mutex
	status plan.Status
	// retry is set while a failed write waits to be retried.
	retry *time.Timer
}

func newReporter(dir string) *reporter {
	return &reporter{dir: dir, status: plan.Status{Restarts: map[string]int{}, Failing: map[string]string{}}}
}

func (r *reporter) following(revision int) {
	r.save(func(s *plan.Status) { s.Revision, s.Ready, s.Error = revision, false, "" })
}
func (r *reporter) waiting(program string) { r.save(func(s *plan.Status) { s.Waiting = program }) }
func (r *reporter) ready()                 { r.save(func(s *plan.Status) { s.Waiting, s.Ready = "", true }) }
func (r *reporter) fail(err error)         { r.save(func(s *plan.Status) { s.Error = err.Error() }) }

func (r *reporter) ended(program, why string) {
	r.save(func(s *plan.Status) {
		s.Restarts[program]++
		s.Failing[program] = why
	})
}

// forget removes a program that is no longer planned.
func (r *reporter) forget(program string) {
	r.save(func(s *plan.Status) {
		delete(s.Restarts, program)
		delete(s.Failing, program)
	})
}

// recovered reports that a program is ready again, unless it has exited since: then ctx is
// done.
func (r *reporter) recovered(ctx context.Context, program string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if ctx.Err() == nil {
		delete(r.status.Failing, program)
		r.write()
	}
}

func (r *reporter) save(change func(*plan.Status)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change(&r.status)
	r.write()
}

// write retries until it succeeds: the disk may be full for a while, and the saved status
// is stale until then.
func (r *reporter) write() {
	err := plan.Write(r.dir, plan.StatusFile, r.status)
	if err == nil || r.retry != nil {
		return
	}
	fmt.Fprintln(os.Stderr, err)
	r.retry = time.AfterFunc(retryPause, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.retry = nil
		r.write()
	})
}

// retryPause is the pause before a failed write is retried.
const retryPause = time.Second
