// SPDX-License-Identifier: Apache-2.0

package broker

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/mlbatch/mlbatch/controller/api/queue"
	"github.com/mlbatch/mlbatch/controller/internal/taskqueue"
	"github.com/mlbatch/mlbatch/controller/internal/taskstore"
	"github.com/mlbatch/mlbatch/controller/internal/worker"
	"github.com/mlbatch/mlbatch/test/patience"
)

// disk is a folder of a disk that may have no room.
type disk struct {
	taskstore.Objects
	full    atomic.Bool
	refused atomic.Int32
}

func (d *disk) Create(ctx context.Context, key string, body io.Reader, size int64) (bool, error) {
	if !d.full.Load() {
		return d.Objects.Create(ctx, key, body, size)
	}
	d.refused.Add(1)
	broken := io.MultiReader(io.LimitReader(body, size/2), none{&fs.PathError{Op: "write", Path: key, Err: syscall.ENOSPC}})
	return d.Objects.Create(ctx, key, broken, size)
}

func (d *disk) Copy(ctx context.Context, from, to string) error {
	if !d.full.Load() {
		return d.Objects.Copy(ctx, from, to)
	}
	d.refused.Add(1)
	return &os.LinkError{Op: "link", Old: from, New: to, Err: syscall.ENOSPC}
}

// none is where nothing more comes from.
type none struct{ err error }

func (n none) Read([]byte) (int, error) { return 0, n.err }

// notes is a log that is read while it is written.
type notes struct {
	lock sync.Mutex
	text bytes.Buffer
}

func (n *notes) Write(p []byte) (int, error) {
	n.lock.Lock()
	defer n.lock.Unlock()
	return n.text.Write(p)
}

func (n *notes) String() string {
	n.lock.Lock()
	defer n.lock.Unlock()
	return n.text.String()
}

// While the disk of the store is full, the broker says so, and nothing counts as a try. When it has
// room again, the queue goes on to its end, and nothing is left of what could not be written.
func TestAFullDiskLosesNoTask(t *testing.T) {
	const tasks = 20
	folder, name := folderOf(t, tasks)
	d, log := &disk{Objects: folder}, &notes{}
	address, ended := d.serve(t, log)
	var workers sync.WaitGroup
	for i := range 3 {
		w := worker.Worker{Queue: address, Name: fmt.Sprint("w", i), Folder: t.TempDir(), Stdout: io.Discard, Stderr: io.Discard, Line: `f() { echo done >"$2"; }; f`}
		workers.Go(func() {
			if err := w.Run(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	for end := time.Now().Add(patience.For(time.Minute)); d.refused.Load() < 10; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("only %d writes were tried", d.refused.Load())
		}
	}
	if _, text := request(t, "GET", address+queue.StatPath, ""); !strings.Contains(text, `"pending":17,"leased":3,"done":0,"dead":0`) {
		t.Errorf("while the disk is full, the queue says %s", text)
	}
	if !strings.Contains(log.String(), "the store fails: write ") || !strings.Contains(log.String(), ": no space left on device\n") {
		t.Errorf("the log has no reason:\n%s", log)
	}
	d.full.Store(false)
	workers.Wait()
	if end := <-ended; end.Succeeded != tasks || end.Failed != 0 {
		t.Errorf("it ends with %+v", end)
	}
	for folder, want := range map[string]int{"outbox": tasks, ".mlbatch-queue/r-u/done": tasks, ".mlbatch-queue/temporary": 0} {
		if found, err := os.ReadDir(filepath.Join(name, folder)); err != nil || len(found) != want {
			t.Errorf("%s has %d files, not %d: %v", folder, len(found), want, err)
		}
	}
	if tries, err := os.ReadDir(filepath.Join(name, ".mlbatch-queue/r-u/tries")); err == nil {
		t.Errorf("%d tasks have a try that failed", len(tries))
	}
}

// serve begins a broker, whose disk is full then. None begins on a full disk, but one may later.
func (d *disk) serve(t *testing.T, log io.Writer) (address string, ended <-chan queue.End) {
	t.Helper()
	store, err := taskstore.New(d, taskstore.Place{Run: "r", UID: "u", Inbox: "inbox", Outbox: "outbox"})
	if err != nil {
		t.Fatal(err)
	}
	settings := ordinary
	settings.Open = false
	d.full.Store(true)
	_, err = New(t.Context(), store, settings, log)
	if err == nil || errors.Is(err, taskqueue.ErrHopeless) || !strings.HasPrefix(err.Error(), "cannot write to the store: write ") || !strings.HasSuffix(err.Error(), "no space left on device") {
		t.Fatalf("on a full disk, a broker says %v", err)
	}
	d.full.Store(false)
	b, err := New(t.Context(), store, settings, log)
	if err != nil {
		t.Fatal(err)
	}
	d.full.Store(true)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ends := make(chan queue.End, 1)
	go func() {
		end, _ := b.Serve(t.Context(), listener)
		ends <- end
	}()
	return "http://" + listener.Addr().String(), ends
}
