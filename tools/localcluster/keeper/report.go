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

// reporter keeps the cluster's status file true.
type reporter struct {
	dir    string
	mu     sync.Mutex
	status plan.Status
	// again is set while a status waits to be saved, as on a full disk.
	again *time.Timer
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

// gone forgets a program that is not planned any more.
func (r *reporter) gone(program string) {
	r.save(func(s *plan.Status) {
		delete(s.Restarts, program)
		delete(s.Failing, program)
	})
}

// recovered reports that a program is ready again, unless it has ended since,
// and with it the context.
func (r *reporter) recovered(ctx context.Context, program string) {
	r.save(func(s *plan.Status) {
		if ctx.Err() == nil {
			delete(s.Failing, program)
		}
	})
}

func (r *reporter) save(change func(*plan.Status)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change(&r.status)
	r.write()
}

// write tries until it succeeds: the disk may be full for a while, and what is on
// it then is not true any more.
func (r *reporter) write() {
	err := plan.Write(r.dir, plan.StatusFile, r.status)
	if err == nil || r.again != nil {
		return
	}
	fmt.Fprintln(os.Stderr, err)
	r.again = time.AfterFunc(retryPause, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.again = nil
		r.write()
	})
}

// retryPause is how long a status that could not be saved waits.
const retryPause = time.Second
