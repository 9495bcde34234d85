// SPDX-License-Identifier: Apache-2.0

package broker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mlbatch/mlbatch/controller/api/queue"
	"github.com/mlbatch/mlbatch/controller/internal/taskstore"
	"github.com/mlbatch/mlbatch/controller/internal/worker"
	"github.com/mlbatch/mlbatch/test/patience"
)

// sick is a store that fails for single tasks, or does not answer at all.
type sick struct {
	Store
	away atomic.Bool
}

func (s *sick) Epoch(ctx context.Context) (int, error) {
	if s.away.Load() {
		return 0, syscall.EIO
	}
	return s.Store.Epoch(ctx)
}

func (s *sick) Open(ctx context.Context, task string) (io.ReadCloser, int64, error) {
	body, size, err := s.Store.Open(ctx, task)
	if err == nil && task == "000001" { // found, and unreadable
		return io.NopCloser(none{syscall.EIO}), 10, body.Close()
	}
	if s.away.Load() || task == "000000" {
		return nil, 0, errors.Join(err, syscall.EIO)
	}
	return body, size, err
}

func (s *sick) PutResult(ctx context.Context, task, token string, body io.Reader, size int64) error {
	if task == "000002" {
		return syscall.EIO
	}
	return s.Store.PutResult(ctx, task, token, body, size)
}

// works has a worker for the tasks in the folder.
func (s *sick) works(t *testing.T, tasks int) (address string, log *notes, ended <-chan queue.End) {
	t.Helper()
	folder, _ := folderOf(t, tasks)
	store, err := taskstore.New(folder, taskstore.Place{Run: "r", UID: "u", Inbox: "inbox", Outbox: "outbox"})
	if err != nil {
		t.Fatal(err)
	}
	s.Store = store
	settings := ordinary
	settings.Open = false
	log = &notes{}
	b, err := New(t.Context(), s, settings, log)
	if err != nil {
		t.Fatal(err)
	}
	b.patience = time.Second
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ends := make(chan queue.End, 1)
	go func() {
		end, _ := b.Serve(t.Context(), listener)
		ends <- end
	}()
	address = "http://" + listener.Addr().String()
	w := worker.Worker{Queue: address, Name: "w", Folder: t.TempDir(), Stdout: io.Discard, Stderr: io.Discard, Line: `f() { echo done >"$2"; }; f`}
	go func() { _ = w.Run(t.Context()) }() // It ends with the test.
	return address, log, ends
}

// A bad sector, or a file of somebody else, is no reason to wait for good, with quota that nothing uses.
func TestAnErrorOfTheStoreForOneTaskIsAnAnswer(t *testing.T) {
	t.Parallel() // It waits.
	_, log, ended := (&sick{}).works(t, 4)
	select {
	case end := <-ended:
		if end.Succeeded != 1 || end.Failed != 3 {
			t.Errorf("it ends with %+v", end)
		}
	case <-time.After(patience.For(time.Minute)):
		t.Fatal("it does not end")
	}
	for _, want := range []string{`task "000000" cannot be read (input/output error)`, `task "000001" cannot be read`, `the result of task "000002" cannot be written (input/output error)`} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log does not say %s:\n%s", want, log)
		}
	}
}

// While the store does not answer at all, no task has a try that fails.
func TestAStoreThatIsAwayIsWaitedFor(t *testing.T) {
	t.Parallel() // It waits.
	s := &sick{}
	s.away.Store(true)
	folder := 4
	address, _, ended := s.works(t, folder)
	time.Sleep(4 * time.Second)
	if _, text := request(t, "GET", address+queue.StatPath, ""); !strings.Contains(text, `"dead":0`) {
		t.Errorf("meanwhile, the queue says %s", text)
	}
	s.away.Store(false)
	if end := <-ended; end.Succeeded != 1 {
		t.Errorf("it ends with %+v", end)
	}
}

func TestWhatIsASpell(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := failing{tasks: map[string]spell{}}
		for i, row := range []struct {
			after time.Duration
			err   error
			want  time.Duration
		}{
			{0, syscall.EIO, 0},
			{40 * time.Second, syscall.EIO, 40 * time.Second},
			{40 * time.Second, nil, 0},
			{time.Second, syscall.EIO, 0},
			{2 * time.Minute, syscall.EIO, 0}, // nobody has asked meanwhile
			{time.Second, fmt.Errorf("write: %w", syscall.ENOSPC), 0},
			{time.Second, syscall.EDQUOT, 0},
		} {
			time.Sleep(row.after)
			f.note("a", row.err, time.Now())
			if got := f.lasts("a", time.Now()); got != row.want {
				t.Errorf("%d: it lasts %s, want %s", i, got, row.want)
			}
		}
	})
}
