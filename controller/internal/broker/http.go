// SPDX-License-Identifier: Apache-2.0

package broker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/mlbatch/mlbatch/controller/api/queue"
	"github.com/mlbatch/mlbatch/controller/internal/taskqueue"
)

// longest is how long a request for a task waits for one.
const longest = 20 * time.Second

// maxReport is how long the body of a report is. In JSON a byte can take six, in two streams.
const maxReport = 14 * queue.MaxLog

// ServeHTTP answers requests of workers and people. Names in paths stay escaped until they are a
// task's: no server may think that they are folders.
func (b *Broker) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	connection := http.NewResponseController(w)
	_ = connection.SetWriteDeadline(time.Time{}) // That of the answer before is over. The connection of a test has none.
	r.Body = steady{r.Body, connection, b.idle}
	path := r.URL.EscapedPath()
	if rest, found := strings.CutPrefix(path, queue.TasksPath); found {
		b.task(w, r, rest)
		return
	}
	if rest, found := strings.CutPrefix(path, queue.ResultsPath); found && r.Method == http.MethodPut {
		b.result(w, r, rest)
		return
	}
	if path == queue.StatPath && r.Method == http.MethodGet {
		b.tell(w, b.ask(r.Context(), taskqueue.Stat{}))
		return
	}
	if r.Method != http.MethodPost {
		http.Error(w, "there is no such request", http.StatusNotFound)
		return
	}
	b.post(w, r, path)
}

// post answers requests with JSON.
func (b *Broker) post(w http.ResponseWriter, r *http.Request, path string) {
	request, known := requests[path]
	if !known {
		http.Error(w, "there is no such request", http.StatusNotFound)
		return
	}
	if path == queue.DonePath || path == queue.FailedPath {
		select {
		case b.reports <- struct{}{}:
			defer func() { <-b.reports }()
		case <-r.Context().Done():
			return
		}
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxReport))
	if err != nil {
		http.Error(w, "the body is too long, or broke off", http.StatusBadRequest)
		return
	}
	asked, err := request(body)
	if err != nil {
		http.Error(w, "the body is not the JSON of this request", http.StatusBadRequest)
		return
	}
	answer := b.ask(r.Context(), asked)
	if lease, leased := answer.Body.(queue.Lease); leased && r.Context().Err() != nil {
		// Nobody is there to run it.
		b.ask(context.WithoutCancel(r.Context()), taskqueue.Release{Task: lease.Task, Token: lease.Token})
	}
	b.tell(w, answer)
}

// steady is the body of a client that does not stall. How long it takes in all does not matter.
type steady struct {
	io.ReadCloser
	connection *http.ResponseController
	idle       time.Duration
}

// Read has a deadline. After the body there is none: the client waits for us then.
func (s steady) Read(p []byte) (int, error) {
	_ = s.connection.SetReadDeadline(time.Now().Add(s.idle))
	n, err := s.ReadCloser.Read(p)
	if err != nil {
		_ = s.connection.SetReadDeadline(time.Time{})
	}
	return n, err
}

// requests are those with JSON.
var requests = map[string]func(body []byte) (taskqueue.Request, error){
	queue.LeasePath:   ofWorker(func(w queue.Worker) taskqueue.Request { return taskqueue.Lease(w) }),
	queue.ByePath:     ofWorker(func(w queue.Worker) taskqueue.Request { return taskqueue.Bye(w) }),
	queue.DrainPath:   func([]byte) (taskqueue.Request, error) { return taskqueue.Drain{}, nil },
	queue.RenewPath:   ofReport(func(r queue.Report) taskqueue.Request { return taskqueue.Renew(r) }),
	queue.DonePath:    ofReport(func(r queue.Report) taskqueue.Request { return taskqueue.Success(r) }),
	queue.FailedPath:  ofReport(func(r queue.Report) taskqueue.Request { return taskqueue.Failure(r) }),
	queue.ReleasePath: ofReport(func(r queue.Report) taskqueue.Request { return taskqueue.Release(r) }),
}

func ofWorker(of func(queue.Worker) taskqueue.Request) func([]byte) (taskqueue.Request, error) {
	return func(body []byte) (taskqueue.Request, error) {
		var w queue.Worker
		err := json.Unmarshal(body, &w)
		w.Worker = shortened(w.Worker, maxWorker)
		return of(w), err
	}
}

// maxWorker is how much is remembered of the name of a worker.
const maxWorker = 253

func ofReport(of func(queue.Report) taskqueue.Request) func([]byte) (taskqueue.Request, error) {
	return func(body []byte) (taskqueue.Request, error) {
		var r queue.Report
		err := json.Unmarshal(body, &r)
		r.Worker = shortened(r.Worker, maxWorker)
		if r.Log != nil {
			r.Log.Worker = shortened(r.Log.Worker, maxWorker)
		}
		return of(r), err
	}
}

func shortened(text string, length int) string {
	return text[:min(len(text), length)]
}

// tell does not wait for a client that does not read.
func (b *Broker) tell(w http.ResponseWriter, answer taskqueue.Answer) {
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(b.idle))
	if answer.Body == nil {
		w.WriteHeader(answer.Code)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(answer.Code)
	_ = json.NewEncoder(w).Encode(answer.Body) // Who has gone hears nothing.
}

// ask waits for an answer. What the loop has taken is answered, also if the client has gone.
func (b *Broker) ask(ctx context.Context, request taskqueue.Request) taskqueue.Answer {
	c := call{ctx: ctx, request: request, answer: make(chan taskqueue.Answer, 1), since: time.Now()}
	select {
	case b.calls <- c:
	case <-ctx.Done():
		return taskqueue.Answer{Code: http.StatusServiceUnavailable}
	case <-b.over:
		return taskqueue.Answer{Code: http.StatusServiceUnavailable}
	}
	select {
	case answer := <-c.answer:
		return answer
	case <-b.over:
	}
	select {
	case answer := <-c.answer: // the last request of a queue is answered, and then the loop ends
		return answer
	default:
		return taskqueue.Answer{Code: http.StatusServiceUnavailable}
	}
}

// task reads or adds a task.
func (b *Broker) task(w http.ResponseWriter, r *http.Request, escaped string) {
	name, err := url.PathUnescape(escaped)
	if err != nil || !taskqueue.Named(name) {
		http.Error(w, "there cannot be a task of this name", http.StatusBadRequest)
		return
	}
	switch r.Method {
	case http.MethodGet:
		b.send(w, r, name)
	case http.MethodPost:
		b.add(w, r, name)
	default:
		http.Error(w, "a task is read with GET and added with POST", http.StatusMethodNotAllowed)
	}
}

func (b *Broker) send(w http.ResponseWriter, r *http.Request, name string) {
	body, size, err := b.store.Open(r.Context(), name)
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, taskqueue.ErrHopeless) {
		b.log.Printf("task %q cannot be read: %v", name, err)
		http.Error(w, "the broker may not read the task", http.StatusForbidden) // It stays so: no worker may wait for it.
		return
	}
	if err == nil {
		defer body.Close()
	} else if !errors.Is(err, fs.ErrNotExist) {
		b.failing.note(name, err, time.Now())
	}
	switch {
	case b.hopeless(r.Context(), name):
		b.log.Printf("task %q cannot be read (%v), and others can: it fails", name, err)
		http.Error(w, "the store cannot read the task", http.StatusFailedDependency)
	case err != nil:
		b.refuse(w, err)
	default:
		w.Header().Set("Content-Type", "application/octet-stream")
		w.Header().Set("Content-Length", strconv.FormatInt(size, 10))
		contents := &source{Reader: body}
		_, _ = io.CopyN(reading{w, b.idle}, contents, size) // The worker sees that it is too short.
		b.failing.note(name, contents.err, time.Now())
	}
}

// source remembers how what is read has failed.
type source struct {
	io.Reader
	err error
}

// Read remembers an error.
func (s *source) Read(p []byte) (int, error) {
	n, err := s.Reader.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		s.err = err
	}
	return n, err
}

// reading is an answer to a client that does not stall. How long it takes in all does not matter.
type reading struct {
	w    http.ResponseWriter
	idle time.Duration
}

// Write has a deadline.
func (r reading) Write(p []byte) (int, error) {
	_ = http.NewResponseController(r.w).SetWriteDeadline(time.Now().Add(r.idle))
	return r.w.Write(p)
}

// refuse says why the store did not do it. Of one that never will, the broker ends.
func (b *Broker) refuse(w http.ResponseWriter, err error) {
	var long *http.MaxBytesError
	switch {
	case errors.Is(err, fs.ErrNotExist):
		http.Error(w, "there is no such task", http.StatusNotFound)
	case errors.Is(err, fs.ErrInvalid):
		http.Error(w, "there cannot be a task of this name", http.StatusBadRequest)
	case errors.As(err, &long):
		http.Error(w, tooLong, http.StatusRequestEntityTooLarge)
	default:
		b.log.Printf("the store fails: %v", err)
		if errors.Is(err, taskqueue.ErrHopeless) {
			b.fail(err)
		}
		http.Error(w, "the store fails: try again", http.StatusServiceUnavailable)
	}
}

const tooLong = "a task or a result has at most 256 MiB"

// bounded is the body of a request that is stored.
func bounded(w http.ResponseWriter, r *http.Request) (io.Reader, bool) {
	if r.ContentLength > queue.MaxBytes {
		http.Error(w, tooLong, http.StatusRequestEntityTooLarge)
		return nil, false
	}
	if r.ContentLength < 0 {
		http.Error(w, "say with Content-Length how long it is", http.StatusLengthRequired)
		return nil, false
	}
	return http.MaxBytesReader(w, r.Body, queue.MaxBytes), true
}

func (b *Broker) add(w http.ResponseWriter, r *http.Request, name string) {
	body, fine := bounded(w, r)
	if !fine {
		return
	}
	if answer := b.ask(r.Context(), taskqueue.Add{Task: name}); answer.Code != http.StatusOK {
		http.Error(w, notAdded[answer.Code], answer.Code)
		return
	}
	created, err := b.store.Add(r.Context(), name, body, r.ContentLength)
	// Nobody may be left waiting because the client has gone. What is in the inbox is a task.
	answer := b.ask(context.WithoutCancel(r.Context()), taskqueue.Added{Task: name, Written: err == nil})
	switch {
	case err != nil:
		b.refuse(w, err)
	case answer.Code != http.StatusOK:
		b.tell(w, answer)
	case !created:
		http.Error(w, notAdded[http.StatusConflict], http.StatusConflict)
	}
}

// notAdded says to people why there is no new task.
var notAdded = map[int]string{
	http.StatusConflict:            "there is a task of this name",
	http.StatusGone:                "the queue takes no more tasks",
	http.StatusServiceUnavailable:  "the broker ends: try again",
	http.StatusInsufficientStorage: fmt.Sprintf("the queue has %d tasks, and no queue has more", queue.MaxTasks),
}

func (b *Broker) result(w http.ResponseWriter, r *http.Request, rest string) {
	escaped, token, _ := strings.Cut(rest, "/")
	name, err := url.PathUnescape(escaped)
	body, fine := bounded(w, r)
	if !fine {
		return
	}
	if err != nil {
		http.Error(w, "there cannot be a task of this name", http.StatusBadRequest)
		return
	}
	if answer := b.ask(r.Context(), taskqueue.Result{Task: name, Token: token}); answer.Code != http.StatusOK {
		b.tell(w, answer)
		return
	}
	contents := &source{Reader: body}
	err = b.store.PutResult(r.Context(), name, token, contents, r.ContentLength)
	if contents.err == nil { // else it is the worker's fault
		b.failing.note(name+"/"+token, err, time.Now())
	}
	switch {
	case err == nil:
	case b.hopeless(r.Context(), name+"/"+token):
		b.log.Printf("the result of task %q cannot be written (%v), and others can: it fails", name, err)
		http.Error(w, "the store cannot write the result", http.StatusFailedDependency)
	default:
		b.refuse(w, err)
	}
}
