// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"sync"

	"github.com/mlbatch/mlbatch/tools/localcluster/plan"
)

// reporter keeps the cluster's status file true.
type reporter struct {
	dir    string
	mu     sync.Mutex
	status plan.Status
}

func newReporter(dir string) *reporter {
	return &reporter{dir: dir, status: plan.Status{Restarts: map[string]int{}}}
}

func (r *reporter) waiting(program string) { r.save(func(s *plan.Status) { s.Waiting = program }) }
func (r *reporter) restarted(program string) {
	r.save(func(s *plan.Status) { s.Restarts[program]++ })
}
func (r *reporter) ready()         { r.save(func(s *plan.Status) { s.Waiting, s.Ready = "", true }) }
func (r *reporter) fail(err error) { r.save(func(s *plan.Status) { s.Error = err.Error() }) }

func (r *reporter) save(change func(*plan.Status)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change(&r.status)
	if err := plan.Write(r.dir, plan.StatusFile, r.status); err != nil {
		fmt.Fprintln(os.Stderr, err) // the disk is full; the cluster may still live
	}
}
