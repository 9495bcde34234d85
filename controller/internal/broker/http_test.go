// SPDX-License-Identifier: Apache-2.0

package broker

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mlbatch/mlbatch/controller/api/queue"
	"github.com/mlbatch/mlbatch/controller/internal/taskqueue"
	"github.com/mlbatch/mlbatch/controller/internal/taskstore"
	"github.com/mlbatch/mlbatch/controller/internal/worker"
	"github.com/mlbatch/mlbatch/test/patience"
)

// serve is a broker over HTTP until the test ends.
func serve(t testing.TB, objects taskstore.Objects, settings Settings) (address string, end func() queue.End) {
	t.Helper()
	store, err := taskstore.New(objects, taskstore.Place{Run: "r", UID: "u", Inbox: "inbox", Outbox: "outbox"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	b, err := New(ctx, store, settings, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan queue.End, 1)
	go func() {
		end, _ := b.Serve(ctx, listener)
		ended <- end
	}()
	t.Cleanup(stop)
	return "http://" + listener.Addr().String(), func() queue.End { return <-ended }
}

var ordinary = Settings{Settings: taskqueue.Settings{Lease: 30 * time.Second, MaxAttempts: 1, Open: true}}

func request(t testing.TB, method, url, body string) (int, string) {
	t.Helper()
	r, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, _ := io.ReadAll(answer.Body)
	return answer.StatusCode, string(text)
}

func TestRequests(t *testing.T) {
	address, end := serve(t, newMemory(), ordinary)
	for _, row := range []struct {
		method, path, body string
		code               int
		text               string
	}{
		{"POST", "/v1/tasks/a%2Fb%20c", "text", 200, ""},
		{"POST", "/v1/tasks/a%2Fb%20c", "other", 409, "there is a task of this name\n"},
		{"POST", "/v1/tasks/..%2Fx", "text", 400, ""},
		{"POST", "/v1/tasks/..", "text", 400, ""},
		{"PUT", "/v1/tasks/a", "", 405, ""},
		{"GET", "/v1/tasks/a%2Fb%20c", "", 200, "text"},
		{"GET", "/v1/tasks/none", "", 404, ""},
		{"GET", "/v1/tasks/..%2F..%2Fetc%2Fpasswd", "", 400, ""},
		{"GET", "/v1/none", "", 404, ""},
		{"POST", "/v1/none", "", 404, ""},
		{"POST", "/v1/lease", "{", 400, ""},
		{"POST", "/v1/lease", strings.Repeat(" ", 2<<20), 400, ""},
		{"POST", "/v1/lease", `{"worker":"w"}`, 200, `{"task":"a/b c","token":"1.1","leaseSeconds":30,"attempt":1}` + "\n"},
		{"POST", "/v1/done", `{"task":"a/b c","token":"1.1"}`, 409, ""},
		{"PUT", "/v1/results/a%2Fb%20c/1.2", "result", 409, ""},
		{"PUT", "/v1/results/a%2Fb%20c/..", "result", 409, ""},
		{"PUT", "/v1/results/a%2Fb%20c/1.1", "result", 200, ""},
		{"POST", "/v1/renew", `{"task":"a/b c","token":"1.1"}`, 200, ""},
		{"POST", "/v1/done", `{"task":"a/b c","token":"1.1"}`, 200, ""},
		{"POST", "/v1/tasks/bad", "", 200, ""},
		{"POST", "/v1/drain", "", 200, ""},
		{"POST", "/v1/tasks/late", "", 410, "the queue takes no more tasks\n"},
		{"POST", "/v1/lease", `{"worker":"w"}`, 200, `{"task":"bad","token":"1.2","leaseSeconds":30,"attempt":1}` + "\n"},
		{"POST", "/v1/failed", `{"task":"bad","token":"1.2","log":{"code":7}}`, 200, ""},
		{"POST", "/v1/lease", `{"worker":"w"}`, 410, ""}, // It waits until the queue is closed.
		{
			"GET", "/v1/stat", "", 200, `{"pending":0,"leased":0,"done":1,"dead":1,"open":true,"drained":true,"closed":true,"tasks":[` +
				`{"name":"bad","state":"Dead","attempts":1,"worker":"w","code":7},{"name":"a/b c","state":"Done","attempts":0,"worker":"w"}]}` + "\n",
		},
		{"POST", "/v1/bye", `{"worker":"w"}`, 200, ""},
	} {
		code, text := request(t, row.method, address+row.path, row.body)
		if code != row.code || row.text != "" && text != row.text {
			t.Errorf("%s %s %.60s: %d %s", row.method, row.path, row.body, code, text)
		}
	}
	if got := end(); got != (queue.End{Succeeded: 1, Failed: 1, Message: "1 of 2 tasks have failed for good, and queue.maxFailed is 0: bad"}) {
		t.Errorf("%+v", got)
	}
}

// The loop answers the last request and ends: that request has its answer, whichever is seen first.
func TestTheLastRequestIsAnswered(t *testing.T) {
	for range 100 {
		b := &Broker{calls: make(chan call), over: make(chan struct{})}
		go func() {
			c := <-b.calls
			c.answer <- taskqueue.Answer{Code: http.StatusOK}
			close(b.over)
		}()
		if answer := b.ask(t.Context(), taskqueue.Bye{}); answer.Code != http.StatusOK {
			t.Fatalf("the answer is %d", answer.Code)
		}
	}
}

// FuzzRequests: no request stops the broker.
func FuzzRequests(f *testing.F) {
	address, _ := serve(f, newMemory(), ordinary)
	handler := http.DefaultClient
	f.Add("POST", "/v1/done", `{"task":"a"}`)
	f.Add("PUT", "/v1/results/a/1.1", "")
	f.Fuzz(func(t *testing.T, method, path, body string) {
		if strings.Contains(path, "lease") {
			return // It waits.
		}
		r, err := http.NewRequest(method, address, strings.NewReader(body))
		if err != nil {
			return
		}
		r.URL.Path = "/" + strings.TrimPrefix(path, "/")
		if answer, err := handler.Do(r); err == nil {
			answer.Body.Close()
		}
		if code, _ := request(t, "GET", address+"/v1/stat", ""); code != 200 {
			t.Error("the broker answers", code)
		}
	})
}

func TestTooMuchIsRefused(t *testing.T) {
	b := &Broker{over: make(chan struct{})}
	close(b.over)
	for _, path := range []string{"POST /v1/tasks/a", "PUT /v1/results/a/1.1"} {
		method, where, _ := strings.Cut(path, " ")
		r := httptest.NewRequest(method, where, bytes.NewReader(nil))
		for length, want := range map[int64]int{queue.MaxBytes + 1: 413, -1: 411} {
			r.ContentLength = length
			w := httptest.NewRecorder()
			if b.ServeHTTP(w, r); w.Code != want {
				t.Errorf("%s of %d bytes: %d", path, length, w.Code)
			}
		}
	}
}

func folderOf(t testing.TB, tasks int) (*taskstore.Folder, string) {
	t.Helper()
	name := t.TempDir()
	if err := os.Mkdir(filepath.Join(name, "inbox"), 0o755); err != nil {
		t.Fatal(err)
	}
	for i := range tasks {
		if err := os.WriteFile(filepath.Join(name, "inbox", fmt.Sprintf("%06d", i)), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	folder, err := taskstore.OpenFolder(name)
	if err != nil {
		t.Fatal(err)
	}
	return folder, name
}

var measured = flag.Int("queue.tasks", 50, "how many tasks TestMeasure has: make test-long measures with as many as a queue may have")

// TestMeasure brings a queue in a folder to its end, and prints how fast that was. Only the memory
// of the process, in which the workers and the test are, too, is asserted.
func TestMeasure(t *testing.T) {
	alone, _ := folderOf(t, 0)
	begin, creates := time.Now(), min(max(50, *measured/4), 1000)
	for i := range creates {
		if _, err := alone.Create(t.Context(), fmt.Sprint("x/", i), strings.NewReader("1.1"), 3); err != nil {
			t.Fatal(err)
		}
	}
	rate := float64(creates) / time.Since(begin).Seconds()
	folder, name := folderOf(t, *measured)
	settings := ordinary
	settings.Open = false
	address, end := serve(t, folder, settings)
	begin = time.Now()
	var workers sync.WaitGroup
	for i := range 8 {
		workers.Go(func() { idle(t, address, fmt.Sprint("w", i)) })
	}
	workers.Wait()
	took := time.Since(begin).Seconds()
	if got := end(); got.Succeeded != *measured || got.Failed > 0 {
		t.Errorf("%+v", got)
	}
	for i := range *measured {
		if text, err := os.ReadFile(filepath.Join(name, "outbox", fmt.Sprintf("%06d", i))); err != nil || string(text) != "r" {
			t.Fatalf("task %d has the result %q: %v", i, text, err)
		}
	}
	const writes = 4 // output, log.json, done, outbox
	t.Logf("%.0f synced creates a second alone; a task has %d writes", rate, writes)
	t.Logf("%d tasks of no length with 8 workers, to the end: %.0f a second, which is %.2f of %.0f", *measured, float64(*measured)/took, float64(*measured)/took/(rate/writes), rate/writes)
	peak := peakMemory(t)
	t.Logf("%d MiB resident at most, with the workers and the test", peak)
	if *measured >= queue.MaxTasks && peak > 200 {
		t.Error("the broker may take 200 MiB")
	}
}

// peakMemory is that of this process, in MiB.
func peakMemory(t *testing.T) int {
	t.Helper()
	status, _ := os.ReadFile("/proc/self/status") // There is none but on Linux.
	for line := range strings.Lines(string(status)) {
		if fields := strings.Fields(line); len(fields) > 1 && fields[0] == "VmHWM:" {
			kilobytes, err := strconv.Atoi(fields[1])
			if err != nil {
				t.Fatal(err)
			}
			return kilobytes >> 10
		}
	}
	return 0
}

// idle is a worker whose program takes no time.
func idle(t testing.TB, address, name string) {
	for {
		code, text := request(t, "POST", address+queue.LeasePath, `{"worker":"`+name+`"}`)
		if code == http.StatusGone {
			request(t, "POST", address+queue.ByePath, `{"worker":"`+name+`"}`)
			return
		}
		task, token := between(text, `"task":"`), between(text, `"token":"`)
		if code == http.StatusOK {
			request(t, "PUT", address+queue.ResultsPath+task+"/"+token, "r")
			request(t, "POST", address+queue.DonePath, `{"task":"`+task+`","token":"`+token+`"}`)
		}
	}
}

func between(text, before string) string {
	_, rest, _ := strings.Cut(text, before)
	value, _, _ := strings.Cut(rest, `"`)
	return value
}

// A worker ends a program that took too long, that lost its task, or that has to go.
func TestAWorkerEndsItsProgram(t *testing.T) {
	t.Parallel() // It waits.
	settings := ordinary
	settings.Timeout = patience.For(3 * time.Second) // in which a shell starts and copies a file
	address, end := serve(t, newMemory(), settings)
	for _, task := range []string{"quick", "slow", "fails"} {
		if code, _ := request(t, "POST", address+"/v1/tasks/"+task, task); code != 200 {
			t.Fatal(code)
		}
	}
	request(t, "POST", address+queue.DrainPath, "")
	w := worker.Worker{
		Queue: address, Name: "w", Folder: t.TempDir(), Stdout: io.Discard, Stderr: io.Discard,
		Line: `f() { case $CODEFLARE_TASK in slow) sleep 100;; fails) echo why >&2; exit 7;; esac; cp "$1" "$2"; }; f`,
	}
	if err := w.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := end(); got.Succeeded != 1 || got.Failed != 2 {
		t.Errorf("%+v", got)
	}
}

func TestAWorkerGivesItsTaskBack(t *testing.T) {
	address, _ := serve(t, newMemory(), ordinary)
	request(t, "POST", address+"/v1/tasks/a", "")
	ctx, stop := context.WithTimeout(t.Context(), time.Second)
	defer stop()
	w := worker.Worker{Queue: address, Name: "w", Folder: t.TempDir(), Stdout: io.Discard, Stderr: io.Discard, Line: "f() { sleep 100; }; f"}
	if err := w.Run(ctx); err != worker.ErrStopped { //nolint:errorlint // It is not wrapped.
		t.Error(err)
	}
	if _, text := request(t, "GET", address+queue.StatPath, ""); !strings.Contains(text, `"pending":1`) {
		t.Error(text)
	}
}

// locked is a store of which some calls are not allowed.
type locked struct {
	taskstore.Objects
	open, create error
}

func (l locked) Open(ctx context.Context, key string) (io.ReadCloser, int64, error) {
	if l.open != nil && strings.HasPrefix(key, "inbox/") {
		return nil, 0, l.open
	}
	return l.Objects.Open(ctx, key)
}

func (l locked) Create(ctx context.Context, key string, body io.Reader, size int64) (bool, error) {
	if l.create != nil && strings.HasSuffix(key, "/output") {
		return false, l.create
	}
	return l.Objects.Create(ctx, key, body, size)
}

// A task that the broker may not read is given up, and does not keep a worker.
func TestATaskThatNobodyMayReadIsDead(t *testing.T) {
	for _, denied := range []error{fmt.Errorf("open inbox/a: %w", fs.ErrPermission), fmt.Errorf("%w: denied", taskqueue.ErrHopeless)} {
		address, end := serve(t, locked{Objects: newMemory(), open: denied}, ordinary)
		request(t, "POST", address+"/v1/tasks/a", "")
		request(t, "POST", address+queue.DrainPath, "")
		if code, text := request(t, "GET", address+"/v1/tasks/a", ""); code != http.StatusForbidden || text != "the broker may not read the task\n" {
			t.Errorf("%d %s", code, text)
		}
		ctx, enough := context.WithTimeout(t.Context(), patience.For(patience.Short))
		defer enough()
		w := worker.Worker{Queue: address, Name: "w", Folder: t.TempDir(), Stdout: io.Discard, Stderr: io.Discard, Line: "true"}
		if err := w.Run(ctx); err != nil {
			t.Fatal(err)
		}
		if got := end(); got.Failed != 1 {
			t.Errorf("%+v", got)
		}
	}
}

// Of a store that takes no results, and never will, the broker says so.
func TestAStoreThatTakesNoResultsIsHopeless(t *testing.T) {
	store, err := taskstore.New(locked{Objects: newMemory(), create: fmt.Errorf("%w: denied", taskqueue.ErrHopeless)}, taskstore.Place{Run: "r", UID: "u", Inbox: "inbox", Outbox: "outbox"})
	if err != nil {
		t.Fatal(err)
	}
	b, err := New(t.Context(), store, ordinary, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() {
		_, err := b.Serve(t.Context(), listener)
		ended <- err
	}()
	address := "http://" + listener.Addr().String()
	request(t, "POST", address+"/v1/tasks/a", "")
	request(t, "POST", address+queue.LeasePath, `{"worker":"w"}`)
	// The answer leaves when the whole result has come, and that is after the broker knows how it ends.
	rest, sender := io.Pipe()
	r, err := http.NewRequest("PUT", address+"/v1/results/a/1.1", rest)
	if err != nil {
		t.Fatal(err)
	}
	r.ContentLength = 2
	go func() {
		_, _ = io.WriteString(sender, "r")
		<-b.over
		_, _ = io.WriteString(sender, "r")
		_ = sender.Close()
	}()
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusServiceUnavailable {
		t.Error(answer.Status)
	}
	select {
	case err := <-ended:
		if !errors.Is(err, taskqueue.ErrHopeless) {
			t.Error(err)
		}
	case <-time.After(patience.For(patience.Short)):
		t.Error("the broker goes on")
	}
}
