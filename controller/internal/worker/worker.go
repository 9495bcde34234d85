// SPDX-License-Identifier: Apache-2.0

// Package worker runs the tasks of a work queue, one after the other.
package worker

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/mlbatch/mlbatch/controller/api/queue"
)

// Worker is one of a queue.
type Worker struct {
	// Queue is the URL of the broker, Line the shell line of the program, Name unique in the queue.
	Queue, Line, Name string
	// Folder has the files of the task.
	Folder string
	// Stdout and Stderr are where the program writes, too.
	Stdout, Stderr io.Writer
	client         http.Client
	// patience is how long a request may make no progress; 0 is stalled.
	patience time.Duration
}

// ErrStopped is of a worker that was told to end before the queue did.
var ErrStopped = errors.New("the worker was told to end, and has given its task back")

// errLost is the cause of the end of a program whose task is not the worker's any more.
var errLost = errors.New("the task is not ours any more")

// Pauses between two requests of which the first failed.
const soonest, latest = 200 * time.Millisecond, 5 * time.Second

// Run runs tasks until there are none.
func (w *Worker) Run(ctx context.Context) error {
	w.client = http.Client{Transport: direct()}
	for {
		lease := queue.Lease{}
		code, err := w.post(ctx, queue.LeasePath, queue.Worker{Worker: w.Name}, &lease)
		switch {
		case ctx.Err() != nil:
			return ErrStopped
		case err != nil || code >= http.StatusInternalServerError:
			pause(ctx, time.Second)
		case code == http.StatusGone:
			_, _ = w.post(ctx, queue.ByePath, queue.Worker{Worker: w.Name}, nil) // It ends without it, later.
			return nil
		case code == http.StatusOK:
			if err := w.task(ctx, lease); err != nil {
				return err
			}
		case code != http.StatusNoContent:
			return fmt.Errorf("%s answers %d to a request for a task: it is not the broker of this queue", w.Queue, code)
		}
	}
}

// direct makes connections without a proxy. A proxy that the program's environment has is for what
// is outside, and does not know the broker.
func direct() http.RoundTripper {
	return &http.Transport{
		DialContext: (&net.Dialer{Timeout: 30 * time.Second}).DialContext, MaxIdleConns: 2, IdleConnTimeout: time.Minute,
	}
}

func pause(ctx context.Context, length time.Duration) {
	select {
	case <-time.After(length):
	case <-ctx.Done():
	}
}

// task is one lease, from its beginning to the report. The error is of a worker that can run no
// task: it ends, so that it takes no other one before its pod has paused.
func (w *Worker) task(stopped context.Context, lease queue.Lease) error {
	ctx, lost := context.WithCancelCause(stopped)
	defer lost(nil)
	go w.renew(ctx, lease, lost)
	log := queue.Log{Worker: w.Name, Code: 1}
	folder, sick := os.MkdirTemp(w.Folder, "task-")
	defer os.RemoveAll(folder)
	output := filepath.Join(folder, "output")
	if sick == nil {
		log, sick = w.attempt(ctx, lease, filepath.Join(folder, "input"), output)
	}
	if sick != nil {
		log.Reason = sick.Error()
	}
	if ctx.Err() == nil {
		w.report(ctx, lease, output, log)
	}
	switch {
	case stopped.Err() != nil:
		return w.release(stopped, lease)
	case sick != nil && ctx.Err() == nil:
		return fmt.Errorf("cannot make the files of task %s: %w", lease.Task, sick)
	}
	return nil
}

// attempt runs the program with the task.
func (w *Worker) attempt(ctx context.Context, lease queue.Lease, input, output string) (queue.Log, error) {
	log := queue.Log{Worker: w.Name, Code: 1}
	code, err := w.fetch(ctx, lease, input)
	switch {
	case err != nil:
		return log, err
	case code == http.StatusOK:
		return w.execute(ctx, lease, input, output), nil
	case code == http.StatusForbidden:
		log.Reason = "the broker may not read the task"
	case code == http.StatusFailedDependency:
		log.Reason = "the store cannot read the task"
	default:
		log.Reason = "the task is not in the inbox any more"
	}
	return log, nil
}

// release gives a task back, when there is a little time left.
func (w *Worker) release(stopped context.Context, lease queue.Lease) error {
	ctx, enough := context.WithTimeout(context.WithoutCancel(stopped), 5*time.Second)
	defer enough()
	_, _ = w.post(ctx, queue.ReleasePath, w.own(lease, nil), nil) // Otherwise its lease expires.
	return ErrStopped
}

func (w *Worker) own(lease queue.Lease, log *queue.Log) queue.Report {
	return queue.Report{Task: lease.Task, Token: lease.Token, Worker: w.Name, Log: log}
}

// renew keeps a lease until ctx ends. What cannot be reached is no reason to stop: only the broker
// says that the task is lost.
func (w *Worker) renew(ctx context.Context, lease queue.Lease, lost context.CancelCauseFunc) {
	every := max(time.Duration(lease.LeaseSeconds)*time.Second, time.Second) / 3
	for {
		pause(ctx, every)
		if ctx.Err() != nil {
			return
		}
		soon, enough := context.WithTimeout(ctx, every)
		code, err := w.post(soon, queue.RenewPath, w.own(lease, nil), nil)
		enough()
		if err == nil && code < http.StatusInternalServerError && code != http.StatusOK {
			lost(errLost)
			return
		}
	}
}

// fetch writes the task into a file. The error is of the file.
func (w *Worker) fetch(ctx context.Context, lease queue.Lease, to string) (code int, failed error) {
	code = w.insist(ctx, func() (int, error) {
		failed = nil
		ctx, progress := w.watch(ctx)
		defer progress.end()
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, w.Queue+queue.TasksPath+url.PathEscape(lease.Task), nil)
		if err != nil {
			return 0, err
		}
		answer, err := w.client.Do(request)
		if err != nil {
			return 0, err
		}
		defer answer.Body.Close()
		if answer.StatusCode != http.StatusOK {
			return answer.StatusCode, nil
		}
		body := &source{Reader: progress.of(answer.Body)}
		failed = save(to, body)
		return answer.StatusCode, body.err
	})
	return code, failed
}

// source tells an answer that broke off from a disk that is full.
type source struct {
	io.Reader
	err error
}

// Read remembers how the source failed.
func (s *source) Read(p []byte) (int, error) {
	n, err := s.Reader.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		s.err = err
	}
	return n, err
}

func save(to string, body io.Reader) error {
	file, err := os.Create(to)
	if err != nil {
		return err
	}
	_, err = io.Copy(file, body)
	return errors.Join(err, file.Close())
}

// insist makes a request until the broker has answered it.
func (w *Worker) insist(ctx context.Context, request func() (int, error)) int {
	for wait := soonest; ctx.Err() == nil; wait = min(2*wait, latest) {
		if code, err := request(); err == nil && code < http.StatusInternalServerError {
			return code
		}
		pause(ctx, wait)
	}
	return 0
}

// report says how a task has ended. A result counts if the broker says so.
func (w *Worker) report(ctx context.Context, lease queue.Lease, output string, log queue.Log) {
	path := queue.FailedPath
	if log.Code == 0 {
		size, reason := measured(output)
		code := 0
		if reason == "" {
			code, reason = w.put(ctx, lease, output, size)
		}
		switch {
		case reason != "":
			log.Code, log.Reason = 1, reason
		case code == http.StatusFailedDependency:
			log.Code, log.Reason = 1, "the store cannot write the result"
		case code != http.StatusOK:
			return
		default:
			path = queue.DonePath
		}
	}
	w.insist(ctx, func() (int, error) { return w.post(ctx, path, w.own(lease, &log), nil) })
}

// measured is the size of a result. A program need not write one.
func measured(output string) (size int64, reason string) {
	info, err := os.Stat(output)
	switch {
	case errors.Is(err, os.ErrNotExist):
		if _, err := os.Lstat(output); err == nil {
			return 0, "the output is a link to nothing"
		}
		return 0, ""
	case err != nil:
		return 0, err.Error()
	case !info.Mode().IsRegular():
		return 0, "the output is not a file"
	case info.Size() > queue.MaxBytes:
		return 0, "the output is larger than 256 MiB"
	}
	return info.Size(), ""
}

// put stores a result. There is a reason if the output cannot be read: it is of no use to insist.
func (w *Worker) put(ctx context.Context, lease queue.Lease, output string, size int64) (code int, reason string) {
	code = w.insist(ctx, func() (int, error) {
		ctx, progress := w.watch(ctx)
		defer progress.end()
		body := &sized{Reader: http.NoBody, left: size}
		if size > 0 {
			file, err := os.Open(output)
			if err != nil {
				reason = err.Error()
				return 0, nil
			}
			defer file.Close()
			body.Reader = progress.of(io.LimitReader(file, size))
		}
		to := w.Queue + queue.ResultsPath + url.PathEscape(lease.Task) + "/" + lease.Token
		request, err := http.NewRequestWithContext(ctx, http.MethodPut, to, body)
		if err != nil {
			return 0, err
		}
		request.ContentLength = size
		if size == 0 {
			request.Body = http.NoBody
		}
		code, err := w.send(request, nil)
		if err != nil && body.short.Load() {
			reason = "the output is shorter than its size, or cannot be read"
			return 0, nil
		}
		return code, err
	})
	return code, reason
}

// sized tells an output that broke off from a broker that did.
type sized struct {
	io.Reader
	left  int64
	short atomic.Bool
}

// Read is called by one goroutine, and short is read by another.
func (s *sized) Read(p []byte) (int, error) {
	n, err := s.Reader.Read(p)
	s.left -= int64(n)
	if err != nil && s.left > 0 {
		s.short.Store(true)
	}
	return n, err
}

// post sends JSON, and reads the answer into a value if there is one.
func (w *Worker) post(ctx context.Context, path string, body, into any) (int, error) {
	text, err := json.Marshal(body)
	if err != nil {
		return 0, err
	}
	ctx, progress := w.watch(ctx)
	defer progress.end()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, w.Queue+path, bytes.NewReader(text))
	if err != nil {
		return 0, err
	}
	request.Header.Set("Content-Type", "application/json")
	return w.send(request, into)
}

func (w *Worker) send(request *http.Request, into any) (int, error) {
	answer, err := w.client.Do(request)
	if err != nil {
		return 0, err
	}
	defer answer.Body.Close()
	all, err := io.ReadAll(io.LimitReader(answer.Body, 1<<20))
	if err == nil && into != nil && answer.StatusCode == http.StatusOK {
		err = json.Unmarshal(all, into)
	}
	return answer.StatusCode, err
}
