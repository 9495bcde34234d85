// SPDX-License-Identifier: Apache-2.0

// Package taskstore keeps what a work queue must not forget, in a folder or a bucket: the tasks,
// their results, and which result counts. What counts is only ever created, never changed.
package taskstore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sync/errgroup"

	"github.com/mlbatch/mlbatch/controller/internal/taskqueue"
)

// Objects are files by their paths, in a folder or a bucket.
type Objects interface {
	// Create makes a file that is not there yet, whole or not at all, and returns once it is
	// durable. Of several only one does; for the others created is false. A size of -1 is unknown.
	Create(ctx context.Context, key string, body io.Reader, size int64) (created bool, err error)
	// Open reads a file. The error of one that is not there is fs.ErrNotExist.
	Open(ctx context.Context, key string) (io.ReadCloser, int64, error)
	// List calls a function for each file below a folder, or of none if there is no folder.
	List(ctx context.Context, folder string, each func(key string, size int64)) error
	// Copy makes one file the same as another, whatever it was.
	Copy(ctx context.Context, from, to string) error
	// Same is whether Copy would change nothing.
	Same(ctx context.Context, from, to string) (bool, error)
}

// Place is where a queue is.
type Place struct {
	// Run and UID name the queue; Inbox and Outbox are folders.
	Run, UID, Inbox, Outbox string
}

// records has a folder for each queue.
const records = ".mlbatch-queue"

// Store is the store of one queue.
type Store struct {
	objects Objects
	place   Place
	own     string
}

// New is the store of a queue. It touches nothing.
func New(objects Objects, place Place) (*Store, error) {
	for _, name := range []string{place.Run, place.UID} {
		if name == "" || strings.Contains(name, "/") || !fs.ValidPath(name) {
			return nil, fmt.Errorf("a queue cannot be of Run %q with UID %q", place.Run, place.UID)
		}
	}
	place.Inbox, place.Outbox = path.Clean(place.Inbox), path.Clean(place.Outbox)
	switch {
	case !fs.ValidPath(place.Inbox) || !fs.ValidPath(place.Outbox):
		return nil, fmt.Errorf("inbox %q or outbox %q is not a folder of the data: correct inbox of the Run", place.Inbox, place.Outbox)
	case recorded(place.Inbox) || within(place.Inbox, place.Outbox):
		return nil, fmt.Errorf("inbox %q has what the queue writes: choose another inbox of the Run", place.Inbox)
	}
	return &Store{objects: objects, place: place, own: path.Join(records, place.Run+"-"+place.UID)}, nil
}

func within(name, folder string) bool {
	return name == folder || strings.HasPrefix(name, folder+"/")
}

// recorded is whether a file is of what a queue remembers: ours, or one that is in a folder below.
func recorded(key string) bool {
	return slices.Contains(strings.Split(key, "/"), records)
}

// Probe finds out whether the store creates a file once.
func (s *Store) Probe(ctx context.Context) error {
	for second := range 2 {
		created, err := s.objects.Create(ctx, path.Join(s.own, "probe"), strings.NewReader(""), 0)
		if err != nil {
			return unwritable(err)
		}
		if second > 0 && created {
			return fmt.Errorf("%w: the bucket does not honour If-None-Match, without which two results of a task could be accepted", taskqueue.ErrHopeless)
		}
	}
	return nil
}

// unwritable tells errors that stay from those that go.
func unwritable(err error) error {
	var link *os.LinkError
	switch {
	case errors.As(err, &link) && (errors.Is(err, syscall.EPERM) || errors.Is(err, errors.ErrUnsupported)):
		return fmt.Errorf("%w: its file system has no hard links, without which two results of a task could be accepted: %w", taskqueue.ErrHopeless, err)
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		return fmt.Errorf("%w: the broker may not write to the folder: let its user do so, who is %d: %w", taskqueue.ErrHopeless, os.Geteuid(), err)
	}
	return fmt.Errorf("cannot write to the store: %w", err)
}

// Load begins another life of the broker, and reads all that was written before.
func (s *Store) Load(ctx context.Context) (taskqueue.Record, error) {
	epoch, err := s.begin(ctx)
	if err != nil {
		return taskqueue.Record{}, fmt.Errorf("cannot begin: %w", err)
	}
	record := taskqueue.Record{Epoch: epoch, Done: map[string]string{}, Dead: map[string]bool{}, Tries: map[string][]string{}}
	err = s.list(ctx, "tries", func(rest string) {
		if key, token, two := strings.Cut(rest, "/"); two {
			record.Tries[key] = append(record.Tries[key], token)
		}
	})
	err = errors.Join(err,
		s.list(ctx, "dead", func(key string) { record.Dead[key] = true }),
		s.list(ctx, "done", func(key string) { record.Done[key] = "" }),
		s.there(ctx, "drained", &record.Drained),
		s.inbox(ctx, &record))
	if err == nil {
		err = s.accepted(ctx, &record)
	}
	if err != nil {
		return taskqueue.Record{}, fmt.Errorf("cannot read the store: %w", err)
	}
	return record, nil
}

// begin creates the next epoch. A broker that lost the answer takes the one after it.
func (s *Store) begin(ctx context.Context) (int, error) {
	epoch, err := s.Epoch(ctx)
	for err == nil {
		epoch++
		var created bool
		if created, err = s.create(ctx, "", "epoch", fmt.Sprintf("%08d", epoch)); created {
			break
		}
	}
	return epoch, err
}

// Epoch is the latest life of a broker.
func (s *Store) Epoch(ctx context.Context) (int, error) {
	latest := 0
	err := s.list(ctx, "epoch", func(name string) {
		if epoch, err := strconv.Atoi(name); err == nil {
			latest = max(latest, epoch)
		}
	})
	return latest, err
}

// list calls a function with what follows the folder in each path.
func (s *Store) list(ctx context.Context, folder string, each func(rest string)) error {
	folder = path.Join(s.own, folder)
	return s.objects.List(ctx, folder, func(key string, _ int64) {
		if rest, below := strings.CutPrefix(key, folder+"/"); below {
			each(rest)
		}
	})
}

func (s *Store) there(ctx context.Context, name string, found *bool) error {
	body, _, err := s.objects.Open(ctx, path.Join(s.own, name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	*found = true
	return body.Close()
}

// inbox finds the tasks.
func (s *Store) inbox(ctx context.Context, record *taskqueue.Record) error {
	err := s.objects.List(ctx, s.place.Inbox, func(key string, size int64) {
		if !within(key, s.place.Outbox) && !recorded(key) {
			record.Inbox = append(record.Inbox, taskqueue.File{Name: s.name(key), Size: size})
		}
	})
	slices.SortFunc(record.Inbox, func(a, b taskqueue.File) int { return strings.Compare(a.Name, b.Name) })
	return err
}

// name is that of the task of a file.
func (s *Store) name(key string) string {
	if s.place.Inbox == "." {
		return key
	}
	return strings.TrimPrefix(key, s.place.Inbox+"/")
}

// file is that of a task.
func (s *Store) file(task string) (string, error) {
	key := path.Join(s.place.Inbox, task)
	if !taskqueue.Named(task) || within(key, s.place.Outbox) || recorded(key) {
		return "", fmt.Errorf("there cannot be a task %q: %w", task, fs.ErrInvalid)
	}
	return key, nil
}

// atOnce is how many files are read at the same time.
const atOnce = 16

// accepted reads which results count, and which of them are not in the outbox.
func (s *Store) accepted(ctx context.Context, record *taskqueue.Record) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	var lock sync.Mutex
	for _, file := range record.Inbox {
		key := taskqueue.Key(file.Name)
		lock.Lock()
		_, done := record.Done[key]
		lock.Unlock()
		if !done {
			continue
		}
		group.Go(func() error {
			token, err := s.token(ctx, file.Name)
			if err != nil {
				return err
			}
			same, err := s.objects.Same(ctx, s.output(file.Name, token), s.published(file.Name))
			lock.Lock()
			defer lock.Unlock()
			record.Done[key] = token
			if !same {
				record.Unpublished = append(record.Unpublished, file.Name)
			}
			return err
		})
	}
	err := group.Wait()
	slices.Sort(record.Unpublished)
	return err
}

func (s *Store) output(task, token string) string {
	return path.Join(s.own, "results", taskqueue.Key(task), token, "output")
}

func (s *Store) published(task string) string {
	return path.Join(s.place.Outbox, taskqueue.Key(task))
}

// token is that of the accepted result.
func (s *Store) token(ctx context.Context, task string) (string, error) {
	body, _, err := s.objects.Open(ctx, path.Join(s.own, "done", taskqueue.Key(task)))
	if err != nil {
		return "", err
	}
	defer body.Close()
	text, err := io.ReadAll(io.LimitReader(body, 100))
	return string(text), err
}

func (s *Store) create(ctx context.Context, text string, parts ...string) (bool, error) {
	return s.objects.Create(ctx, path.Join(s.own, path.Join(parts...)), strings.NewReader(text), int64(len(text)))
}

// Open reads a task.
func (s *Store) Open(ctx context.Context, task string) (io.ReadCloser, int64, error) {
	key, err := s.file(task)
	if err != nil {
		return nil, 0, err
	}
	return s.objects.Open(ctx, key)
}

// Add writes a new task, and returns false if there is one.
func (s *Store) Add(ctx context.Context, task string, body io.Reader, size int64) (bool, error) {
	key, err := s.file(task)
	if err != nil {
		return false, err
	}
	return s.objects.Create(ctx, key, body, size)
}

// PutResult stores what an attempt has come to. The first one counts.
func (s *Store) PutResult(ctx context.Context, task, token string, body io.Reader, size int64) error {
	_, err := s.objects.Create(ctx, s.output(task, token), body, size)
	return err
}

// Do makes a write. Who is not sure that it was made makes it again. Of Accept, the token is that
// which counts, and an empty one means that there is no result to accept.
func (s *Store) Do(ctx context.Context, w taskqueue.Write) (string, error) {
	key := taskqueue.Key(w.Task)
	var err error
	switch w.Kind {
	case taskqueue.KeepLog:
		_, err = s.create(ctx, text(w.Log), "results", key, w.Token, "log.json")
	case taskqueue.Accept:
		return s.accept(ctx, w)
	case taskqueue.Publish:
		err = s.objects.Copy(ctx, s.output(w.Task, w.Token), s.published(w.Task))
	case taskqueue.Try:
		_, err = s.create(ctx, text(w.Log), "tries", key, w.Token)
	case taskqueue.Bury:
		_, err = s.create(ctx, text(w.Log), "dead", key)
	case taskqueue.DrainQueue:
		_, err = s.create(ctx, "", "drained")
	case taskqueue.CloseQueue:
		_, err = s.create(ctx, text(w.End), "closed")
	}
	return "", err
}

// accept makes a result the one that counts, if there is none yet.
func (s *Store) accept(ctx context.Context, w taskqueue.Write) (string, error) {
	body, _, err := s.objects.Open(ctx, s.output(w.Task, w.Token))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	body.Close()
	created, err := s.create(ctx, w.Token, "done", taskqueue.Key(w.Task))
	if err != nil || created {
		return w.Token, err
	}
	return s.token(ctx, w.Task)
}

func text(value any) string {
	all, err := json.Marshal(value)
	if err != nil {
		return err.Error() // No value of ours has it.
	}
	return string(all)
}
