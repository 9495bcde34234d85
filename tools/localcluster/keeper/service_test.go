// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/mlbatch/mlbatch/test/patience"
	"github.com/mlbatch/mlbatch/tools/localcluster/plan"
)

func TestBackoffGrowsUntilAProgramIsStable(t *testing.T) {
	for name, c := range map[string]struct{ last, lived, want time.Duration }{
		"first restart":          {0, 0, time.Second},
		"second restart":         {time.Second, 0, 2 * time.Second},
		"at the longest backoff": {8 * time.Second, 10 * time.Second, 8 * time.Second},
		"after it was stable":    {8 * time.Second, time.Minute, time.Second},
		"after a short run":      {2 * time.Second, 59 * time.Second, 4 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			if got := nextBackoff(c.last, c.lived); got != c.want {
				t.Errorf("the pause is %s, want %s", got, c.want)
			}
		})
	}
}

func TestAProgramThatKeepsFailingBacksOff(t *testing.T) {
	s, p, _ := supervise(t, 1, script("etcd", "exit 1"))
	var pauses []time.Duration
	done := make(chan struct{})
	s.sleep = func(_ context.Context, pause time.Duration) bool {
		if pauses = append(pauses, pause); len(pauses) == 5 {
			close(done)
		}
		return len(pauses) < 5
	}
	must(t, s.follow(p))
	<-done
	if diff := cmp.Diff([]time.Duration{1e9, 2e9, 4e9, 8e9, 8e9}, pauses); diff != "" {
		t.Error(diff)
	}
}

func TestExitsAreDescribed(t *testing.T) {
	for want, status := range map[string]syscall.WaitStatus{
		"ended with exit status 3":        3 << 8,
		"was ended by the signal killed":  syscall.WaitStatus(syscall.SIGKILL),
		"was ended by the signal aborted": syscall.WaitStatus(syscall.SIGABRT),
	} {
		if got := ending(status); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestAProgramThatIsReadyAgainIsNotFailing(t *testing.T) {
	marker := filepath.Join(t.TempDir(), "marker")
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if _, err := os.Stat(marker); err != nil {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	defer server.Close()
	program := script("etcd", "[ -e "+marker+" ] && exec sleep 60; touch "+marker+"; sleep 1; exit 1")
	program.Ready = plan.Probe{URL: server.URL}
	s, p, _ := supervise(t, 2, program)
	must(t, s.follow(p))
	defer s.services["etcd"].stop()
	until(t, "etcd is well after one restart", func() bool {
		status := readStatus(t, s.dir)
		return status.Restarts["etcd"] == 1 && len(status.Failing) == 0
	})
}

func TestTheBeforeProbeRunsBeforeEachStart(t *testing.T) {
	asked := make(chan string, 10)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { asked <- r.Method + " " + r.URL.Path }))
	defer server.Close()
	program := script("kwok", "exit 1")
	program.Before = plan.Probe{URL: server.URL + "/leases", Method: http.MethodDelete}
	s, p, done := supervise(t, 2, program)
	must(t, s.follow(p))
	<-done
	close(asked)
	var all []string
	for request := range asked {
		all = append(all, request)
	}
	if diff := cmp.Diff([]string{"DELETE /leases", "DELETE /leases"}, all); diff != "" {
		t.Error(diff)
	}
}

func TestANewPlanChangesOnlyWhatDiffers(t *testing.T) {
	stays, changes, goes := script("stays", "echo started; exec sleep 60"), script("changes", "echo old; exec sleep 60"), script("goes", "exec sleep 60")
	s, p, _ := supervise(t, 1, stays, changes, goes)
	must(t, s.follow(p))
	awaitLog(t, s, "stays", "started\n")
	awaitLog(t, s, "changes", "old\n")
	gone := s.services["goes"]

	comes := script("comes", "exec sleep 60")
	changed := script("changes", "echo new; exec sleep 60")
	next := plan.Plan{Dir: s.dir, Revision: 1, Programs: []plan.Program{stays, changed, comes}}
	must(t, plan.Write(s.dir, plan.File, next))
	must(t, s.followNew())
	defer s.stopOthers(nil)

	var names []string
	for _, program := range next.Programs {
		if s.services[program.Name] != nil {
			names = append(names, program.Name)
		}
	}
	if diff := cmp.Diff([]string{"stays", "changes", "comes"}, names); diff != "" || len(s.services) != 3 {
		t.Errorf("%d programs live: %s", len(s.services), diff)
	}
	<-gone.stopped // blocks if the program is kept
	if diff := cmp.Diff(plan.Status{Revision: 1, Ready: true}, readStatus(t, s.dir)); diff != "" {
		t.Errorf("what was changed on purpose counts as a restart: %s", diff)
	}
	awaitLog(t, s, "changes", "old\nnew\n")
	awaitLog(t, s, "stays", "started\n")
}

// A user who may not create PID namespaces cannot start the program at all.
func TestAKilledProgramLeavesNoProcesses(t *testing.T) {
	fifo := filepath.Join(t.TempDir(), "held")
	must(t, unix.Mkfifo(fifo, 0o600))
	held, err := unix.Open(fifo, unix.O_RDONLY|unix.O_NONBLOCK, 0)
	must(t, err)
	defer unix.Close(held)
	program := script("processnode", "exec 3>"+fifo+"; sleep 60 & echo started >&3; wait")
	program.PIDNamespace = true
	s, _, _ := supervise(t, 1, program)
	p, err := s.start(newService(program))
	if errors.Is(err, unix.EPERM) && os.Geteuid() != 0 {
		return
	}
	must(t, err)
	said := make([]byte, 100)
	until(t, "the program has started a process", func() bool {
		n, err := unix.Read(held, said)
		return err == nil && n > 0
	})
	must(t, unix.Kill(p.pid, unix.SIGKILL))
	<-p.end
	if _, err := unix.Read(held, said); err != nil {
		t.Errorf("the program has ended, and a process that it started still holds the file (%v)", err)
	}
}

func TestAProgramThatIsNoLongerPlannedIsForgotten(t *testing.T) {
	s, p, done := supervise(t, 2, script("goes", "exit 1"))
	must(t, s.follow(p))
	<-done
	must(t, s.follow(plan.Plan{Dir: s.dir, Revision: 1}))
	if diff := cmp.Diff(plan.Status{Revision: 1, Ready: true}, readStatus(t, s.dir)); diff != "" {
		t.Error(diff)
	}
}

func TestAnUnreadablePlanChangesNothing(t *testing.T) {
	s, p, _ := supervise(t, 1, script("etcd", "exec sleep 60"))
	must(t, s.follow(p))
	defer s.stopOthers(nil)
	if err := s.followNew(); err == nil || !strings.HasPrefix(err.Error(), "cannot read plan.json") {
		t.Errorf("got %v", err)
	}
	if len(s.services) != 1 || !readStatus(t, s.dir).Ready {
		t.Error("the program of the plan before is gone")
	}
}

// awaitLog waits until a program's log has the text.
func awaitLog(t *testing.T, s *supervisor, program, want string) {
	t.Helper()
	until(t, program+" says "+want, func() bool {
		log, _ := os.ReadFile(s.logPath(plan.Program{Name: program}))
		if !strings.HasPrefix(want, string(log)) {
			t.Fatalf("%s has said %q, want %q", program, log, want)
		}
		return string(log) == want
	})
}

// until waits until a condition holds.
func until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	look, tooLate := time.NewTicker(10*time.Millisecond), time.After(patience.For(patience.Short))
	defer look.Stop()
	for !holds() {
		select {
		case <-look.C:
		case <-tooLate:
			t.Fatalf("it did not happen: %s", what)
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
