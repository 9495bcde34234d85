// SPDX-License-Identifier: Apache-2.0

package worker_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mlbatch/mlbatch/controller/api/queue"
	"github.com/mlbatch/mlbatch/controller/internal/worker"
	"github.com/mlbatch/mlbatch/test/patience"
)

// fakeBroker lends one task, and remembers what is said of it.
type fakeBroker struct {
	lock  sync.Mutex
	lease queue.Lease
	// renewal is the answer to renewals, result what was stored, said what came to each path.
	renewal int
	result  string
	said    map[string][]queue.Report
	// task and put, if they are set, answer requests for the task and with the result.
	task, put http.HandlerFunc
}

func (b *fakeBroker) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b.lock.Lock()
	defer b.lock.Unlock()
	body, _ := io.ReadAll(r.Body)
	switch {
	case b.task != nil && strings.HasPrefix(r.URL.Path, queue.TasksPath):
		b.task(w, r)
	case b.put != nil && strings.HasPrefix(r.URL.Path, queue.ResultsPath):
		b.put(w, r)
	case r.URL.Path == queue.LeasePath && len(b.said[queue.LeasePath]) == 0:
		b.said[queue.LeasePath] = []queue.Report{{}}
		_ = json.NewEncoder(w).Encode(b.lease)
	case r.URL.Path == queue.LeasePath:
		w.WriteHeader(http.StatusGone)
	case strings.HasPrefix(r.URL.Path, queue.TasksPath):
		_, _ = io.WriteString(w, "content")
	case strings.HasPrefix(r.URL.Path, queue.ResultsPath):
		b.result = string(body)
	default:
		var report queue.Report
		_ = json.Unmarshal(body, &report)
		b.said[r.URL.Path] = append(b.said[r.URL.Path], report)
		if r.URL.Path == queue.RenewPath {
			w.WriteHeader(b.renewal)
		}
	}
}

// works lets a worker run one task.
func works(t *testing.T, line string, change func(*fakeBroker)) *fakeBroker {
	t.Helper()
	b := &fakeBroker{lease: queue.Lease{Task: "a/b", Token: "1.1", LeaseSeconds: 1, Attempt: 2}, renewal: http.StatusOK, said: map[string][]queue.Report{}}
	if change != nil {
		change(b)
	}
	server := httptest.NewServer(b)
	defer server.Close()
	w := worker.Worker{Queue: server.URL, Name: "w", Folder: t.TempDir(), Line: line, Stdout: io.Discard, Stderr: io.Discard}
	ctx, enough := context.WithTimeout(t.Context(), patience.For(patience.Short))
	defer enough()
	if err := w.Run(ctx); err != nil {
		t.Fatal(err)
	}
	return b
}

// What another worker may have is not worked on, and nothing is said of it: the program and all
// that it has started are killed, also what does not want to end.
func TestALostLeaseEndsTheProgram(t *testing.T) {
	folder := t.TempDir()
	b := works(t, `f() { trap '' TERM; sleep 100 & echo $! $$ > `+folder+`/pids; wait; sleep 100; }; f`, func(b *fakeBroker) { b.renewal = http.StatusConflict })
	for _, path := range []string{queue.DonePath, queue.FailedPath, queue.ReleasePath} {
		if len(b.said[path]) > 0 {
			t.Errorf("%s was told %+v", path, b.said[path])
		}
	}
	text, err := os.ReadFile(filepath.Join(folder, "pids"))
	if err != nil {
		t.Fatal(err)
	}
	for _, field := range strings.Fields(string(text)) {
		pid, err := strconv.Atoi(field)
		if err != nil {
			t.Fatal(err)
		}
		if !endsSoon(pid) {
			t.Errorf("process %d still runs", pid)
		}
	}
}

// endsSoon: the kernel takes a moment, and somebody has to reap the child of a dead program.
func endsSoon(pid int) bool {
	for end := time.Now().Add(patience.For(5 * time.Second)); time.Now().Before(end); {
		state, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
		if errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) || err == nil && strings.Contains(string(state), ") Z ") {
			return true
		}
		time.Sleep(50 * time.Millisecond)
	}
	return false
}

func TestWhatAProgramComesTo(t *testing.T) {
	for sentence, row := range map[string]struct {
		line   string
		path   string
		want   queue.Log
		result string
	}{
		"a result":                  {`f() { cat "$1" "$CODEFLARE_TASK_INPUT" > "$2"; echo out; echo err >&2; }; f`, queue.DonePath, queue.Log{Stdout: "out\n", Stderr: "err\n"}, "contentcontent"},
		"no output is an empty one": {`true`, queue.DonePath, queue.Log{}, ""},
		"what it is told":           {`f() { echo "$CODEFLARE_TASK $CODEFLARE_ATTEMPT"; }; f`, queue.DonePath, queue.Log{Stdout: "a/b 2\n"}, ""},
		"an exit code":              {`f() { exit 7; }; f`, queue.FailedPath, queue.Log{Code: 7}, ""},
		"a signal":                  {`f() { kill -9 $$; }; f`, queue.FailedPath, queue.Log{Code: 137}, ""},
		"no such program":           {`/nowhere`, queue.FailedPath, queue.Log{Code: 127}, ""},
		"a link for an output":      {`f() { ln -s "$1" "$2"; }; f`, queue.DonePath, queue.Log{}, "content"},
		"a link to nothing":         {`f() { ln -s nothing "$2"; }; f`, queue.FailedPath, queue.Log{Code: 1, Reason: "the output is a link to nothing"}, ""},
		"a link to a device":        {`f() { ln -s /dev/zero "$2"; }; f`, queue.FailedPath, queue.Log{Code: 1, Reason: "the output is not a file"}, ""},
		"a folder for an output":    {`f() { mkdir "$2"; }; f`, queue.FailedPath, queue.Log{Code: 1, Reason: "the output is not a file"}, ""},
		"too long":                  {`f() { sleep 100; }; f`, queue.FailedPath, queue.Log{Code: 124, Reason: "timeout"}, ""},
	} {
		t.Run(sentence, func(t *testing.T) {
			b := works(t, row.line, func(b *fakeBroker) {
				if sentence == "too long" {
					b.lease.TimeoutSeconds = 1
				}
			})
			said := b.said[row.path]
			if len(said) != 1 || said[0].Task != "a/b" || said[0].Token != "1.1" || said[0].Log == nil || b.result != row.result {
				t.Fatalf("the result is %q, and said was %+v", b.result, b.said)
			}
			got := *said[0].Log
			if sentence == "no such program" {
				got.Stderr = "" // the words of the shell
			}
			row.want.Worker = "w"
			if diff := cmp.Diff(row.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A task that the broker may not read stays so.
func TestATaskThatCannotBeReadFails(t *testing.T) {
	b := works(t, "true", func(b *fakeBroker) {
		b.task = func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) }
	})
	if said := b.said[queue.FailedPath]; len(said) != 1 || said[0].Log.Reason != "the broker may not read the task" {
		t.Errorf("said was %+v", b.said)
	}
}

// What was left of the program makes the output shorter while it is sent again.
func TestAnOutputThatBreaksOffFails(t *testing.T) {
	for sentence, change := range map[string]func(string) error{
		"it is shorter":    func(output string) error { return os.Truncate(output, 1) },
		"it is not there":  os.Remove,
		"it is folder now": func(output string) error { return errors.Join(os.Remove(output), os.Mkdir(output, 0o755)) },
	} {
		t.Run(sentence, func(t *testing.T) {
			where := filepath.Join(t.TempDir(), "where")
			b := works(t, `f() { echo long >"$2"; printf %s "$2" >`+where+`; }; f`, func(b *fakeBroker) {
				b.put = func(w http.ResponseWriter, _ *http.Request) {
					w.WriteHeader(http.StatusServiceUnavailable)
					if output, err := os.ReadFile(where); err == nil && os.Remove(where) == nil {
						if err := change(string(output)); err != nil {
							t.Error(err)
						}
					}
				}
			})
			if said := b.said[queue.FailedPath]; len(said) != 1 || said[0].Log.Code != 1 || said[0].Log.Reason == "" {
				t.Errorf("said was %+v", b.said)
			}
		})
	}
}

// A worker whose disk fails does not go through the queue: it says so of one task, and ends.
func TestASickWorkerEnds(t *testing.T) {
	b := &fakeBroker{lease: queue.Lease{Task: "a", Token: "1.1", LeaseSeconds: 1, Attempt: 1}, renewal: http.StatusOK, said: map[string][]queue.Report{}}
	server := httptest.NewServer(b)
	defer server.Close()
	w := worker.Worker{Queue: server.URL, Name: "w", Folder: filepath.Join(t.TempDir(), "none"), Line: "true", Stdout: io.Discard, Stderr: io.Discard}
	if err := w.Run(t.Context()); err == nil || !strings.HasPrefix(err.Error(), "cannot make the files of task a: ") {
		t.Errorf("it says %v", err)
	}
	if said := b.said[queue.FailedPath]; len(said) != 1 || said[0].Log.Reason == "" {
		t.Errorf("said was %+v", b.said)
	}
}

// asWorker makes the test program a worker of a queue that only a proxy could know.
const asWorker = "MLBATCH_TEST_AS_WORKER"

func TestMain(m *testing.M) {
	if os.Getenv(asWorker) == "" {
		os.Exit(m.Run())
	}
	ctx, enough := context.WithTimeout(context.Background(), time.Second)
	defer enough()
	w := worker.Worker{Queue: "http://queue.invalid:8080", Name: "w", Line: "true", Stdout: io.Discard, Stderr: io.Discard}
	_ = w.Run(ctx)
}

// A proxy is for what is outside of the cluster.
func TestTheBrokerIsBehindNoProxy(t *testing.T) {
	var asked atomic.Int32
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		w.WriteHeader(http.StatusBadGateway)
	}))
	defer proxy.Close()
	command := exec.CommandContext(t.Context(), os.Args[0])
	command.Env = append(os.Environ(), asWorker+"=1", "HTTP_PROXY="+proxy.URL, "http_proxy="+proxy.URL, "NO_PROXY=", "no_proxy=")
	if out, err := command.CombinedOutput(); err != nil || asked.Load() > 0 {
		t.Errorf("the proxy was asked %d times: %v\n%s", asked.Load(), err, out)
	}
}

func TestAWorkerOfSomethingElseSaysSo(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	w := worker.Worker{Queue: server.URL, Name: "w", Folder: t.TempDir(), Line: "true", Stdout: io.Discard, Stderr: io.Discard}
	if err := w.Run(t.Context()); err == nil || !strings.HasSuffix(err.Error(), "answers 404 to a request for a task: it is not the broker of this queue") {
		t.Errorf("it says %v", err)
	}
}

// A large task through a slow network takes as long as it takes. One that does not come at all is asked for again.
func TestASlowTransferArrives(t *testing.T) {
	t.Parallel() // It waits.
	requests := atomic.Int32{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasPrefix(r.URL.Path, queue.TasksPath):
			w.Header().Set("Content-Length", "8")
			if requests.Add(1) == 1 { // it stalls
				_, _ = io.WriteString(w, "part")
				_ = http.NewResponseController(w).Flush()
				<-r.Context().Done()
				return
			}
			for range 8 {
				time.Sleep(800 * time.Millisecond) // all together is longer than the worker's patience
				_, _ = io.WriteString(w, "x")
				_ = http.NewResponseController(w).Flush()
			}
		case r.URL.Path == queue.LeasePath && requests.Load() == 0:
			_ = json.NewEncoder(w).Encode(queue.Lease{Task: "a", Token: "1.1", LeaseSeconds: 60, Attempt: 1})
		case r.URL.Path == queue.LeasePath:
			w.WriteHeader(http.StatusGone)
		}
	}))
	defer server.Close()
	folder := t.TempDir()
	w := worker.Worker{Queue: server.URL, Name: "w", Folder: t.TempDir(), Line: `f() { cp "$1" ` + folder + `/got; }; f`, Stdout: io.Discard, Stderr: io.Discard}
	w.Patience(5 * time.Second)
	ctx, enough := context.WithTimeout(t.Context(), patience.For(time.Minute))
	defer enough()
	if err := w.Run(ctx); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(filepath.Join(folder, "got")); err != nil || string(got) != "xxxxxxxx" || requests.Load() != 2 {
		t.Errorf("after %d requests, the program gets %q (%v)", requests.Load(), got, err)
	}
}
