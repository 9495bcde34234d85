// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"os"
	"os/signal"
	"sync"
	"syscall"
)

// reaper waits for every child of process 1: the node's programs, whose ends
// it announces, and the orphans that containers leave behind.
type reaper struct {
	mu   sync.Mutex
	ends map[int]chan syscall.WaitStatus
}

func newReaper() *reaper {
	r := &reaper{ends: map[int]chan syscall.WaitStatus{}}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGCHLD)
	go func() {
		for range signals {
			r.reap()
		}
	}()
	return r
}

// start runs a program and returns a channel on which its end will appear.
// Holding the lock over the start means that no end can be missed.
func (r *reaper) start(path string, argv []string, attr *syscall.ProcAttr) (<-chan syscall.WaitStatus, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	pid, err := syscall.ForkExec(path, argv, attr)
	if err != nil {
		return nil, err
	}
	end := make(chan syscall.WaitStatus, 1)
	r.ends[pid] = end
	return end, nil
}

func (r *reaper) reap() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, syscall.WNOHANG, nil)
		if errors.Is(err, syscall.EINTR) {
			continue
		}
		if err != nil || pid <= 0 {
			return
		}
		if end, ours := r.ends[pid]; ours {
			end <- status
			delete(r.ends, pid)
		}
	}
}
