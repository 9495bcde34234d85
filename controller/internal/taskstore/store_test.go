// SPDX-License-Identifier: Apache-2.0

package taskstore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mlbatch/mlbatch/controller/internal/taskqueue"
	"github.com/mlbatch/mlbatch/test/s3server"
)

var place = Place{Run: "r", UID: "u", Inbox: "inbox", Outbox: "outbox"}

// both has a store in a folder and one in a bucket of a real server.
func both(t *testing.T) map[string]Objects {
	folder, err := OpenFolder(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	server := s3server.Start(t)
	bucket, err := OpenBucket(Access{
		Endpoint: server.Endpoint, Name: s3server.Bucket, Prefix: "p", AccessKeyID: s3server.AccessKeyID, SecretAccessKey: s3server.SecretAccessKey,
	})
	if err != nil {
		t.Fatal(err)
	}
	return map[string]Objects{"folder": folder, "bucket": bucket}
}

func TestALifeOfAStore(t *testing.T) {
	for name, objects := range both(t) {
		t.Run(name, func(t *testing.T) {
			ctx := t.Context()
			store, err := New(objects, place)
			if err != nil {
				t.Fatal(err)
			}
			for range 2 {
				if err := store.Probe(ctx); err != nil {
					t.Fatal(err)
				}
			}
			for _, task := range []string{"a b", "c/d", "ü%2F"} {
				created, err := store.Add(ctx, task, strings.NewReader(task), int64(len(task)))
				if !created || err != nil {
					t.Fatal(created, err)
				}
				if created, err := store.Add(ctx, task, strings.NewReader("other"), 5); created || err != nil {
					t.Fatal("it was added again", err)
				}
			}
			write := func(want string, w taskqueue.Write) {
				t.Helper()
				if token, err := store.Do(ctx, w); token != want || err != nil {
					t.Errorf("%+v: %q, %v", w, token, err)
				}
			}
			write("", taskqueue.Write{Kind: taskqueue.Accept, Task: "c/d", Token: "1.1"})
			for _, text := range []string{"first", "second"} {
				if err := store.PutResult(ctx, "c/d", "1.1", strings.NewReader(text), int64(len(text))); err != nil {
					t.Fatal(err)
				}
			}
			if err := store.PutResult(ctx, "c/d", "1.2", strings.NewReader("short"), 9); err == nil {
				t.Error("a result that broke off was stored")
			}
			write("", taskqueue.Write{Kind: taskqueue.Accept, Task: "c/d", Token: "1.2"})
			write("1.1", taskqueue.Write{Kind: taskqueue.Accept, Task: "c/d", Token: "1.1"})
			if err := store.PutResult(ctx, "c/d", "1.3", strings.NewReader(""), 0); err != nil {
				t.Fatal(err)
			}
			write("1.1", taskqueue.Write{Kind: taskqueue.Accept, Task: "c/d", Token: "1.3"})
			write("", taskqueue.Write{Kind: taskqueue.Try, Task: "a b", Token: "1.4"})
			write("", taskqueue.Write{Kind: taskqueue.Bury, Task: "ü%2F"})
			first := loaded(t, store)
			if got := fmt.Sprint(first.Inbox, first.Done, first.Dead, first.Tries, first.Unpublished, first.Epoch); got !=
				"[{a b 3} {c/d 3} {ü%2F 5}] map[c%2Fd:1.1] map[%C3%BC%252F:true] map[a%20b:[1.4]] [c/d] 1" {
				t.Error(got)
			}
			write("", taskqueue.Write{Kind: taskqueue.Publish, Task: "c/d", Token: "1.1"})
			write("", taskqueue.Write{Kind: taskqueue.DrainQueue})
			if second := loaded(t, store); len(second.Unpublished) > 0 || !second.Drained || second.Epoch != 2 {
				t.Errorf("%+v", second)
			}
			if text := readAll(t, objects, "outbox/c%2Fd"); text != "first" {
				t.Errorf("the outbox has %q", text)
			}
		})
	}
}

func loaded(t *testing.T, store *Store) taskqueue.Record {
	t.Helper()
	record, err := store.Load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return record
}

func readAll(t *testing.T, objects Objects, key string) string {
	t.Helper()
	body, _, err := objects.Open(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	defer body.Close()
	text, _ := io.ReadAll(body)
	return string(text)
}

// forgetful is a store that creates a file again.
type forgetful struct{ Objects }

func (forgetful) Create(context.Context, string, io.Reader, int64) (bool, error) { return true, nil }

func TestAStoreThatForgetsIsRefused(t *testing.T) {
	store, err := New(forgetful{}, place)
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Probe(t.Context()); !errors.Is(err, taskqueue.ErrHopeless) || !strings.Contains(err.Error(), "does not honour If-None-Match") {
		t.Error(err)
	}
}

func TestNothingLeavesTheFolder(t *testing.T) {
	outer := t.TempDir()
	inner := filepath.Join(outer, "store")
	for _, err := range []error{
		os.MkdirAll(filepath.Join(inner, "inbox"), 0o755),
		os.WriteFile(filepath.Join(outer, "secret"), []byte("secret"), 0o644),
		os.Symlink(filepath.Join(outer, "secret"), filepath.Join(inner, "inbox", "link")),
		os.Symlink(outer, filepath.Join(inner, "inbox", "folder")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	folder, err := OpenFolder(inner)
	if err != nil {
		t.Fatal(err)
	}
	store, err := New(folder, place)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"link", "folder/secret", "../secret", "/etc/passwd", "a/../../secret", ".", "..", "", "../.mlbatch-queue/r-u/epoch/1"} {
		if body, _, err := store.Open(t.Context(), name); err == nil {
			body.Close()
			t.Errorf("%q was read", name)
		}
		if created, err := store.Add(t.Context(), name, strings.NewReader("x"), 1); created {
			t.Errorf("%q was written: %v", name, err)
		}
	}
	if created, err := store.Add(t.Context(), "folder/new", strings.NewReader("x"), 1); created {
		t.Errorf("a link was followed: %v", err)
	}
	if record := loaded(t, store); len(record.Inbox) != 0 {
		t.Errorf("%v is no task", record.Inbox)
	}
}

func TestThePlaceOfAQueue(t *testing.T) {
	for _, wrong := range []Place{
		{Run: "", UID: "u", Inbox: "inbox", Outbox: "outbox"}, {Run: "a/b", UID: "u", Inbox: "inbox", Outbox: "outbox"},
		{Run: "..", UID: "", Inbox: "inbox", Outbox: "outbox"}, {Run: "r", UID: "u", Inbox: "../x", Outbox: "outbox"},
		{Run: "r", UID: "u", Inbox: "/x", Outbox: "outbox"}, {Run: "r", UID: "u", Inbox: "outbox/x", Outbox: "outbox"},
		{Run: "r", UID: "u", Inbox: ".mlbatch-queue", Outbox: "outbox"},
	} {
		if _, err := New(nil, wrong); err == nil {
			t.Errorf("%+v is no place", wrong)
		}
	}
	// The root has the records and the results, too: they are no tasks.
	folder, err := OpenFolder(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	store, err := New(folder, Place{Run: "r", UID: "u", Inbox: ".", Outbox: "outbox"})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{"a": true, "outbox/a": false, ".mlbatch-queue/a": false, "outboxes": true} {
		if created, _ := store.Add(t.Context(), name, strings.NewReader(""), 0); created != want {
			t.Errorf("%s: %v", name, created)
		}
	}
	if record := loaded(t, store); fmt.Sprint(record.Inbox) != "[{a 0} {outboxes 0}]" {
		t.Error(record.Inbox)
	}
}
