// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mlbatch/mlbatch/tools/localcluster/plan"
)

// oneReaper is shared by all tests: a second one would reap the children of the first.
var oneReaper = sync.OnceValue(newReaper)

// supervise runs programs that are shell scripts. Each is started `times` times; done is
// closed when the last one has exited.
func supervise(t *testing.T, times int, programs ...plan.Program) (s *supervisor, p plan.Plan, done chan struct{}) {
	t.Helper()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, plan.LogDir), 0o755); err != nil {
		t.Fatal(err)
	}
	done = make(chan struct{})
	var ends int
	var mu sync.Mutex
	rest := func(context.Context, time.Duration) bool {
		mu.Lock()
		defer mu.Unlock()
		if ends++; ends == times*len(programs) {
			close(done)
		}
		return ends < times*len(programs)
	}
	s = &supervisor{dir: dir, report: newReporter(dir), reaper: oneReaper(), services: map[string]*service{}, sleep: rest}
	return s, plan.Plan{Dir: dir, Programs: programs}, done
}

func script(name, text string) plan.Program {
	return plan.Program{Name: name, Path: "/bin/sh", Args: []string{"-c", text}, Timeout: time.Minute}
}

func TestAnExitedProgramIsRestartedAndCounted(t *testing.T) {
	s, p, done := supervise(t, 3, script("etcd", "echo round; exit 7"))
	if err := s.follow(p); err != nil {
		t.Fatal(err)
	}
	<-done
	log, err := os.ReadFile(s.logPath(p.Programs[0]))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff("round\nround\nround\n", string(log)); diff != "" {
		t.Errorf("the log does not hold all rounds: %s", diff)
	}
	if diff := cmp.Diff(plan.Status{
		Ready: true, Restarts: map[string]int{"etcd": 3}, Failing: map[string]string{"etcd": "ended with exit status 7"},
	}, readStatus(t, s.dir)); diff != "" {
		t.Error(diff)
	}
}

func TestAProgramThatDoesNotBecomeReadyShowsItsLog(t *testing.T) {
	program := script("containerd", "for i in 1 2 3 4 5 6 7 8 9 10; do echo line $i; done; exit 1")
	program.Ready, program.Timeout = plan.Probe{Socket: filepath.Join(t.TempDir(), "none.sock")}, 2*time.Second // the shell needs some of it
	never := script("etcd", "echo started too early")
	s, p, done := supervise(t, 1, program)
	p.Programs = append(p.Programs, never)
	err := s.follow(p)
	<-done
	if err == nil {
		t.Fatal("a program without its socket counts as ready")
	}
	for _, want := range []string{
		"containerd did not become ready within 2s", "no such file or directory",
		"; the last lines of its log " + s.logPath(program) + ":\n  line 3\n", "\n  line 10",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error lacks %q:\n%v", want, err)
		}
	}
	if _, err := os.Stat(s.logPath(never)); err == nil {
		t.Error("the next program was started although the one before is not ready")
	}
}

func TestAProgramThatCannotStartIsAnError(t *testing.T) {
	s, p, _ := supervise(t, 1, plan.Program{Name: "kubelet", Path: "/does/not/exist"})
	if err := s.follow(p); err == nil || err.Error() != "cannot start kubelet: no such file or directory" {
		t.Errorf("got %v", err)
	}
}

func TestAFailedRestartIsRetried(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kubelet")
	if err := os.WriteFile(path, []byte("#!/bin/sh\nrm $0\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	s, p, done := supervise(t, 3, plan.Program{Name: "kubelet", Path: path})
	if err := s.follow(p); err != nil {
		t.Fatal(err)
	}
	<-done
	if got := readStatus(t, s.dir).Restarts["kubelet"]; got != 3 {
		t.Errorf("%d attempts are counted, want 3", got)
	}
}

func TestAProgramDoesNotInheritTheEnvironment(t *testing.T) {
	t.Setenv("HTTPS_PROXY", "http://proxy.example.org:3128")
	program := script("kube-apiserver", `echo "own: $OWN, proxy: ${HTTPS_PROXY:-none}"`)
	program.Env = []string{"OWN=yes"}
	s, p, done := supervise(t, 1, program)
	if err := s.follow(p); err != nil {
		t.Fatal(err)
	}
	<-done
	if got, want := tail(s.logPath(program), 1), "  own: yes, proxy: none"; got != want {
		t.Errorf("the program saw %q, want %q", got, want)
	}
}

func TestTail(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"a long log gives its last lines":  {"a\nb\nc\nd\n", "  c\n  d"},
		"a short log is given whole":       {"a\n", "  a"},
		"an empty log gives an empty line": {"", "  "},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "log")
			if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, tail(path, 2)); diff != "" {
				t.Error(diff)
			}
		})
	}
	if got := tail(filepath.Join(t.TempDir(), "none"), 2); !strings.HasPrefix(got, "  (no log: ") {
		t.Errorf("an absent log gives %q", got)
	}
}

func readStatus(t *testing.T, dir string) plan.Status {
	t.Helper()
	var status plan.Status
	if err := plan.Read(dir, plan.StatusFile, &status); err != nil {
		t.Fatal(err)
	}
	return status
}
