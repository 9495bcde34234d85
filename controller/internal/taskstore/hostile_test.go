// SPDX-License-Identifier: Apache-2.0

package taskstore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mlbatch/mlbatch/controller/internal/taskqueue"
)

// inFolder is the store of a queue in a new folder.
func inFolder(t *testing.T, name string, place Place) (*Store, *Folder) {
	t.Helper()
	folder, err := OpenFolder(name)
	if err != nil {
		t.Fatal(err)
	}
	store, err := New(folder, place)
	if err != nil {
		t.Fatal(err)
	}
	return store, folder
}

// asNobody calls a function in a thread of a user who owns nothing.
func asNobody(do func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // It is never unlocked: the thread ends with the goroutine.
		const nobody = 65534
		_, _, _ = syscall.RawSyscall(syscall.SYS_SETFSUID, nobody, 0, 0) // Who is not root is somebody already.
		do()
	}()
	<-done
}

// The inbox of another queue can be below ours. What the other one remembers is no task.
func TestTheRecordsOfAnotherQueueAreNoTasks(t *testing.T) {
	for name, objects := range both(t) {
		t.Run(name, func(t *testing.T) {
			for _, key := range []string{"a", "b/inbox/c", "b/.mlbatch-queue/s-v/epoch/00000001", "b/.mlbatch-queue-not/d"} {
				if _, err := objects.Create(t.Context(), key, strings.NewReader(""), 0); err != nil {
					t.Fatal(err)
				}
			}
			store, err := New(objects, Place{Run: "r", UID: "u", Inbox: ".", Outbox: "outbox"})
			if err != nil {
				t.Fatal(err)
			}
			if record := loaded(t, store); fmt.Sprint(record.Inbox) != "[{a 0} {b/.mlbatch-queue-not/d 0} {b/inbox/c 0}]" {
				t.Error(record.Inbox)
			}
			if _, err := store.Add(t.Context(), "b/.mlbatch-queue/s-v/closed", strings.NewReader(""), 0); !errors.Is(err, fs.ErrInvalid) {
				t.Error("another queue was told something:", err)
			}
		})
	}
	if _, err := New(nil, Place{Run: "r", UID: "u", Inbox: "b/.mlbatch-queue/s-v", Outbox: "outbox"}); err == nil {
		t.Error("the records of another queue are our inbox")
	}
}

// Names that are equal for people or for other systems are different tasks, and no name is a path
// or a mark of the store.
func TestOddNamesAreTasks(t *testing.T) {
	names := []string{"a", "A", "\u00e9", "e\u0301", "drained", "closed", "epoch", "done", "probe", "..a", "a..", "...", "a%2Fb", "x\ny", "x\ty", "x\ry", "x\x7f", "x\u202ey", " x ", "x?y#z&w=+", "x\\y", `"x'`, "<x>", strings.Repeat("n", 200)}
	for name, objects := range both(t) {
		t.Run(name, func(t *testing.T) {
			store, err := New(objects, place)
			if err != nil {
				t.Fatal(err)
			}
			ctx, added := t.Context(), 0
			for _, task := range names {
				created, err := store.Add(ctx, task, strings.NewReader(task), int64(len(task)))
				if !created || err != nil {
					t.Errorf("%q: %v", task, err)
					continue
				}
				added++
				err = store.PutResult(ctx, task, "1.1", strings.NewReader("r"+task), int64(len(task))+1)
				for _, kind := range []taskqueue.Kind{taskqueue.KeepLog, taskqueue.Try, taskqueue.Bury, taskqueue.Accept, taskqueue.Publish} {
					_, failed := store.Do(ctx, taskqueue.Write{Kind: kind, Task: task, Token: "1.1"})
					err = errors.Join(err, failed)
				}
				if err != nil {
					t.Errorf("%q: %v", task, err)
				}
			}
			for _, task := range []string{"", ".", "..", "a/", "a//b", "./a", "a/..", "x\x00y", "x\x01y", "x\x1b[2J", "x\ufffe", "\xff"} {
				if _, err := store.Add(ctx, task, strings.NewReader(""), 0); !errors.Is(err, fs.ErrInvalid) {
					t.Errorf("there is a task %q: %v", task, err)
				}
			}
			record := loaded(t, store)
			if len(record.Inbox) != added || len(record.Done) != added || len(record.Dead) != added || len(record.Tries) != added || len(record.Unpublished) > 0 || record.Drained {
				t.Errorf("%d names, and %+v", added, record)
			}
			for _, file := range record.Inbox {
				if got := readAll(t, objects, "outbox/"+taskqueue.Key(file.Name)); got != "r"+file.Name {
					t.Errorf("the result of %q is %q", file.Name, got)
				}
			}
		})
	}
}

// A folder of the inbox is no task, and a task is no folder: whoever adds one is told so.
func TestATaskIsNoFolder(t *testing.T) {
	name := t.TempDir()
	store, _ := inFolder(t, name, place)
	if err := os.MkdirAll(filepath.Join(name, "inbox", "folder"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(name, "inbox", "file"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("nowhere", filepath.Join(name, "inbox", "link")); err != nil {
		t.Fatal(err)
	}
	for _, task := range []string{"folder", "file/a", "link", "link/a"} {
		if created, err := store.Add(t.Context(), task, strings.NewReader(""), 0); created || !errors.Is(err, fs.ErrInvalid) {
			t.Errorf("%s: %v, %v", task, created, err)
		}
	}
}

// Queues of several users can be in one folder: what they share has the rights of the folder.
func TestQueuesOfSeveralUsersShareAFolder(t *testing.T) {
	name := t.TempDir()
	if err := os.Chmod(name, 0o777); err != nil {
		t.Fatal(err)
	}
	defer syscall.Umask(syscall.Umask(0o077))
	store, _ := inFolder(t, name, place)
	ctx := t.Context()
	_, failed := store.Add(ctx, "a/b", strings.NewReader(""), 0)
	err := errors.Join(failed, store.Probe(ctx), store.PutResult(ctx, "a/b", "1.1", strings.NewReader("r"), 1))
	_, failed = store.Do(ctx, taskqueue.Write{Kind: taskqueue.Publish, Task: "a/b", Token: "1.1"})
	if err = errors.Join(err, failed); err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]os.FileMode{
		"inbox/a": 0o777, "outbox": 0o777, ".mlbatch-queue": 0o777, ".mlbatch-queue/temporary": 0o777,
		".mlbatch-queue/r-u": 0o755, ".mlbatch-queue/r-u/results/a%2Fb": 0o755, "outbox/a%2Fb": 0o644, "inbox/a/b": 0o644,
	} {
		if info, err := os.Stat(filepath.Join(name, key)); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v", key, info.Mode(), err)
		}
	}
	other, _ := inFolder(t, name, Place{Run: "s", UID: "v", Inbox: "inbox", Outbox: "outbox"})
	asNobody(func() {
		err := errors.Join(other.Probe(ctx), other.PutResult(ctx, "a/b", "1.1", strings.NewReader("s"), 1))
		if _, failed := other.Do(ctx, taskqueue.Write{Kind: taskqueue.Publish, Task: "a/b", Token: "1.1"}); err != nil || failed != nil {
			t.Error("another user's queue:", err, failed)
		}
	})
	if text, err := os.ReadFile(filepath.Join(name, "outbox", "a%2Fb")); string(text) != "s" {
		t.Errorf("the outbox has %q: %v", text, err)
	}
}

// A broker that may not write ends for good, and says what to do.
func TestAFolderOfSomebodyElseIsHopeless(t *testing.T) {
	name := t.TempDir()
	if err := os.Chmod(name, 0o555); err != nil {
		t.Fatal(err)
	}
	store, _ := inFolder(t, name, place)
	asNobody(func() {
		if err := store.Probe(t.Context()); !errors.Is(err, taskqueue.ErrHopeless) || !strings.Contains(err.Error(), "the broker may not write to the folder: let its user do so") {
			t.Error(err)
		}
	})
}

// linkless is of a file system, some of which have no links.
type linkless struct {
	Objects
	err error
}

func (l linkless) Create(context.Context, string, io.Reader, int64) (bool, error) {
	return false, &os.LinkError{Op: "linkat", Old: "a", New: "b", Err: l.err}
}

// What will be so at the next start, too, is hopeless. A disk may have room again.
func TestAFileSystemWithoutLinksIsHopeless(t *testing.T) {
	for err, want := range map[error]string{
		syscall.EPERM: "its file system has no hard links", syscall.ENOTSUP: "its file system has no hard links",
		syscall.EACCES: "the broker may not write to the folder", syscall.EROFS: "the broker may not write to the folder", syscall.ENOSPC: "",
	} {
		store, wrong := New(linkless{err: err}, place)
		if wrong != nil {
			t.Fatal(wrong)
		}
		if got := store.Probe(t.Context()); errors.Is(got, taskqueue.ErrHopeless) != (want != "") || !strings.Contains(got.Error(), want) {
			t.Errorf("%v: %v", err, got)
		}
	}
}

// File systems have a folder that nobody may read. Tasks in another such folder are not forgotten.
func TestFoldersThatCannotBeRead(t *testing.T) {
	name := t.TempDir()
	if err := os.Chmod(name, 0o777); err != nil {
		t.Fatal(err)
	}
	lock := func(folder string) {
		if err := os.Mkdir(filepath.Join(name, folder), 0); err != nil {
			t.Fatal(err)
		}
	}
	lock("lost+found")
	store, _ := inFolder(t, name, Place{Run: "r", UID: "u", Inbox: ".", Outbox: "outbox"})
	asNobody(func() {
		if _, err := store.Add(t.Context(), "a", strings.NewReader(""), 0); err != nil {
			t.Error(err)
		}
		if record, err := store.Load(t.Context()); err != nil || len(record.Inbox) != 1 {
			t.Error(record, err)
		}
	})
	lock("locked")
	asNobody(func() {
		if _, err := store.Load(t.Context()); !errors.Is(err, taskqueue.ErrHopeless) || !strings.Contains(err.Error(), "the broker may not read the folder locked") {
			t.Error(err)
		}
	})
}

// What brokers that were killed were writing is removed in the end.
func TestWhatTheDeadWereWritingIsRemoved(t *testing.T) {
	name := t.TempDir()
	temporary := filepath.Join(name, ".mlbatch-queue", "temporary")
	if err := os.MkdirAll(temporary, 0o755); err != nil {
		t.Fatal(err)
	}
	for file, age := range map[string]time.Duration{"old": 49 * time.Hour, "young": time.Hour} {
		at := time.Now().Add(-age)
		if err := errors.Join(os.WriteFile(filepath.Join(temporary, file), nil, 0o644), os.Chtimes(filepath.Join(temporary, file), at, at)); err != nil {
			t.Fatal(err)
		}
	}
	store, _ := inFolder(t, name, place)
	if err := store.Probe(t.Context()); err != nil {
		t.Fatal(err)
	}
	left, err := os.ReadDir(temporary)
	if len(left) != 1 || left[0].Name() != "young" {
		t.Error(left, err)
	}
}

// skewed is an S3 server whose clock is another one for now.
type skewed struct{ code string }

func (s skewed) RoundTrip(r *http.Request) (*http.Response, error) {
	text := "<Error><Code>" + s.code + "</Code></Error>"
	return &http.Response{
		StatusCode: http.StatusForbidden, Request: r, ContentLength: int64(len(text)),
		Header: http.Header{"Content-Type": {"application/xml"}}, Body: io.NopCloser(strings.NewReader(text)),
	}, nil
}

// A clock that jumped is no reason to give up a queue for good. A key that is refused is one.
func TestAnotherClockIsNotHopeless(t *testing.T) {
	for code, hopeless := range map[string]bool{"RequestTimeTooSkewed": false, "AccessDenied": true, "SignatureDoesNotMatch": true} {
		bucket, err := OpenBucket(Access{Endpoint: "http://s3.invalid", Name: "bucket", Region: "r", AccessKeyID: "k", SecretAccessKey: "s", Transport: skewed{code}})
		if err != nil {
			t.Fatal(err)
		}
		_, err = bucket.Create(t.Context(), "a", strings.NewReader(""), 0)
		if err == nil || errors.Is(err, taskqueue.ErrHopeless) != hopeless {
			t.Errorf("%s: %v", code, err)
		}
	}
}
