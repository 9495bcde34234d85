// SPDX-License-Identifier: Apache-2.0

// Package broker is the work queue over HTTP. One goroutine takes requests one after the other, and
// taskqueue says what becomes of them. What has to be written is written before the answer.
package broker

import (
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/mlbatch/mlbatch/controller/api/queue"
	"github.com/mlbatch/mlbatch/controller/internal/taskqueue"
)

// Store is where the queue is. Of whatever fails, nobody knows whether it was made.
type Store interface {
	// Probe finds out whether the store can be that of a queue.
	Probe(ctx context.Context) error
	// Load begins another life of the broker.
	Load(ctx context.Context) (taskqueue.Record, error)
	// Epoch is the latest life.
	Epoch(ctx context.Context) (int, error)
	// Do makes a write; of Accept it returns the token that counts.
	Do(ctx context.Context, write taskqueue.Write) (string, error)
	Open(ctx context.Context, task string) (io.ReadCloser, int64, error)
	Add(ctx context.Context, task string, body io.Reader, size int64) (bool, error)
	PutResult(ctx context.Context, task, token string, body io.Reader, size int64) error
}

// Settings are those of the queue and of how it ends.
type Settings struct {
	taskqueue.Settings
	// MaxFailed is how many tasks may fail for good.
	MaxFailed int
}

// Broker is one life of it.
type Broker struct {
	store    Store
	settings Settings
	log      *log.Logger
	epoch    int
	state    taskqueue.State
	calls    chan call
	written  chan ending
	failed   chan error
	// over is closed when nothing is answered any more.
	over chan struct{}
	// idle is how long a client may send nothing of a body, or read nothing of an answer.
	idle time.Duration
	// patience is how long the store may fail for one task while it works for others.
	patience time.Duration
	failing  failing
	// reports has those with logs that are in memory.
	reports chan struct{}
	// waiting are requests for tasks when there is none.
	waiting []call
	// backlog are operations that are not begun; writing counts those that are.
	backlog []job
	writing int
}

// call is a request, and where its answer goes.
type call struct {
	ctx     context.Context
	request taskqueue.Request
	answer  chan taskqueue.Answer
	// since is when it came.
	since time.Time
}

// job is an operation, and the call that waits for it.
type job struct {
	operation taskqueue.Operation
	call      call
}

// ending is of an operation, and of the call that waits for it.
type ending struct {
	written taskqueue.Written
	call    call
}

// New begins a life of the broker.
func New(ctx context.Context, store Store, settings Settings, out io.Writer) (*Broker, error) {
	b := &Broker{
		store: store, settings: settings, log: log.New(out, "", log.LstdFlags|log.LUTC),
		idle: time.Minute, patience: storeFailureLimit, failing: failing{tasks: map[string]spell{}}, reports: make(chan struct{}, writers),
		calls: make(chan call), written: make(chan ending), failed: make(chan error, 1), over: make(chan struct{}),
	}
	if err := store.Probe(ctx); err != nil {
		return nil, err
	}
	record, err := store.Load(ctx)
	if err != nil {
		return nil, err
	}
	b.epoch = record.Epoch
	var operations []taskqueue.Operation
	b.state, operations = taskqueue.New(settings.Settings, record, time.Now())
	b.log.Printf("life %d of this queue begins with %d tasks, of which %d are done", record.Epoch, len(record.Inbox), len(record.Done))
	b.begin(operations, call{})
	return b, nil
}

// Serve answers requests until all tasks have ended and the workers know it.
func (b *Broker) Serve(ctx context.Context, listener net.Listener) (queue.End, error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	server := &http.Server{Handler: b, ReadHeaderTimeout: time.Minute, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10, ErrorLog: b.log}
	go func() { b.fail(server.Serve(listener)) }()
	defer server.Close() // Who did not end in time is cut off.
	go b.watchEpoch(ctx)
	err := b.loop(ctx)
	// The last answers are on their way, also those that say that the store fails.
	patient, enough := context.WithTimeout(ctx, lastAnswers)
	defer enough()
	_ = server.Shutdown(patient)
	if err != nil {
		return queue.End{}, err
	}
	return b.end(), nil
}

// lastAnswers is how long they may take.
const lastAnswers = 5 * time.Second

// loop is the one goroutine that has the state.
func (b *Broker) loop(ctx context.Context) error {
	defer close(b.over)
	tick := time.NewTicker(b.state.Waits())
	defer tick.Stop()
	for b.dispatch(ctx); !b.state.Ended(); b.dispatch(ctx) {
		select {
		case c := <-b.calls:
			b.step(c)
		case e := <-b.written:
			b.writing--
			e.call.request = e.written
			b.step(e.call)
		case <-tick.C:
			b.step(call{request: taskqueue.Tick{}})
		case err := <-b.failed:
			return err
		case <-ctx.Done():
			return ctx.Err()
		}
		b.lend()
	}
	return nil
}

func (b *Broker) step(c call) {
	operations, answer, next := taskqueue.Step(b.state, c.request, time.Now())
	b.state = next
	if _, lease := c.request.(taskqueue.Lease); lease && answer.Code == http.StatusNoContent {
		b.waiting = append(b.waiting, c)
		return
	}
	if answer.Code == 0 {
		b.begin(operations[:1], c)
		operations = operations[1:]
	} else if c.answer != nil {
		c.answer <- answer
	}
	b.begin(operations, call{})
}

// lend answers those who wait for a task, in order.
func (b *Broker) lend() {
	for len(b.waiting) > 0 {
		first := b.waiting[0]
		if first.ctx.Err() != nil || time.Since(first.since) > longest {
			b.waiting = b.waiting[1:]
			first.answer <- taskqueue.Answer{Code: http.StatusNoContent}
			continue
		}
		operations, answer, next := taskqueue.Step(b.state, first.request, time.Now())
		b.state = next
		b.begin(operations, call{})
		if answer.Code == http.StatusNoContent {
			return
		}
		b.waiting = b.waiting[1:]
		first.answer <- answer
	}
}

// begin has operations written, and the loop told.
func (b *Broker) begin(operations []taskqueue.Operation, c call) {
	for _, operation := range operations {
		b.backlog = append(b.backlog, job{operation, c})
	}
}

// writers is how many operations are written at the same time.
const writers = 64

func (b *Broker) dispatch(ctx context.Context) {
	for ; len(b.backlog) > 0 && b.writing < writers; b.backlog = b.backlog[1:] {
		next := b.backlog[0]
		b.writing++
		go func() {
			p := &progress{operation: next.operation}
			if err := b.write(ctx, p); err != nil {
				b.fail(err)
				return
			}
			select {
			case b.written <- ending{p.written(), next.call}:
			case <-ctx.Done():
			}
		}()
	}
}

// fail ends the loop. The first reason counts.
func (b *Broker) fail(err error) {
	select {
	case b.failed <- err:
	default:
	}
}

// lookout is how often a broker looks whether there is a later one.
const lookout = 10 * time.Second

func (b *Broker) watchEpoch(ctx context.Context) {
	for ctx.Err() == nil {
		select {
		case <-time.After(lookout):
		case <-ctx.Done():
			return
		}
		if latest, err := b.store.Epoch(ctx); err == nil && latest > b.epoch {
			b.fail(ErrReplaced)
		}
	}
}

// named is how many failed tasks the last words name.
const named = 10

func (b *Broker) end() queue.End {
	dead, first := b.state.Dead(named)
	done := b.state.Done()
	end := queue.End{Succeeded: done, Failed: dead}
	if dead > b.settings.MaxFailed {
		names := strings.Join(first, ", ")
		if len(names) > 500 {
			names = strings.ToValidUTF8(names[:500], "") + "…"
		} else if dead > len(first) {
			names += ", …"
		}
		end.Message = fmt.Sprintf("%d of %d tasks have failed for good, and queue.maxFailed is %d: %s", dead, done+dead, b.settings.MaxFailed, names)
	}
	return end
}
