// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package cluster_test

import (
	"context"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mlbatch/mlbatch/test/bench"
	"github.com/mlbatch/mlbatch/test/sandbox"
)

// How many AppWrappers run when the controller is killed, and how many are to begin.
const (
	runningThen   = 500
	beginningThen = 50
)

// restart kills our controller, and waits until all AppWrappers run.
func (m *machine) restart() *bench.Restart {
	m.Helper()
	m.requests() // of before
	long := metav1.Duration{Duration: time.Hour}
	running := m.livesOf(bench.Scenario{Name: "running before the restart", Number: runningThen, Pods: 1, RunFor: long})
	running.followJobs()
	running.begins()
	running.await(bench.ToRunning)
	beginning := m.livesOf(bench.Scenario{Name: "beginning at the restart", Number: beginningThen, Pods: 1, RunFor: long, Suspended: true})
	beginning.followJobs()
	beginning.prepare()
	beginning.begins()
	killed := m.kill(bench.Ours)
	beginning.await(bench.ToRunning)
	result := &bench.Restart{
		Running: runningThen, Beginning: beginningThen, All: time.Since(killed).Seconds(), First: bench.FirstAct(m.requests(), killed),
		Duplicates: running.jobsSeen() + beginning.jobsSeen() - runningThen - beginningThen,
	}
	running.clear()
	beginning.clear()
	return result
}

// followJobs begins to count all Jobs that there ever are. The audit log does not tell whether a create
// succeeded whose client was killed.
func (l *lives) followJobs() {
	l.Helper()
	l.jobs = map[types.UID]bool{}
	sandbox.Follow(l.T, l.admin, &batchv1.JobList{}, func(job *batchv1.Job, _ bool) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.jobs[job.UID] = true
	}, client.InNamespace(l.namespace))
}

func (l *lives) jobsSeen() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.jobs)
}

// begins lets all begin at once.
func (l *lives) begins() {
	l.Helper()
	l.each(func(ctx context.Context, i int) error { return l.start(ctx, l.object(i)) })
}

// kill kills a process of the platform, and tells when.
func (m *machine) kill(name string) (at time.Time) {
	m.Helper()
	m.processes.each(m.T, func(found, dir string) {
		if found != name {
			return
		}
		pid, err := strconv.Atoi(filepath.Base(dir))
		if err == nil {
			err = syscall.Kill(pid, syscall.SIGKILL)
		}
		if err != nil {
			m.Fatalf("cannot kill %s: %v", name, err)
		}
		at = time.Now()
	})
	if at.IsZero() {
		m.Fatalf("no process is %s", name)
	}
	return at
}
