// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"
)

// reaper waits for every child of process 1: the node's programs, whose exits it reports,
// and the orphans of containers.
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

// process is a running program; end receives its exit status.
type process struct {
	pid int
	end <-chan syscall.WaitStatus
}

// stopTimeout is how long a program may take to exit after SIGTERM.
const stopTimeout = 10 * time.Second

// stop stops a process and returns when it has exited.
func (p *process) stop() {
	_ = syscall.Kill(p.pid, syscall.SIGTERM)
	select {
	case <-p.end:
	case <-time.After(stopTimeout):
		_ = syscall.Kill(p.pid, syscall.SIGKILL)
		<-p.end
	}
}

// start runs a program. It holds the lock meanwhile, so that no exit is missed.
func (r *reaper) start(path string, argv []string, attr *syscall.ProcAttr) (*process, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	pid, err := syscall.ForkExec(path, argv, attr)
	if err != nil {
		return nil, err
	}
	end := make(chan syscall.WaitStatus, 1)
	r.ends[pid] = end
	return &process{pid: pid, end: end}, nil
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
