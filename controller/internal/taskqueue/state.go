// SPDX-License-Identifier: Apache-2.0

// Package taskqueue answers what becomes of the tasks of a work queue: what a request is answered,
// and what is written before that. It is pure: it has neither the store nor a clock.
package taskqueue

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/mlbatch/mlbatch/controller/api/queue"
)

// ErrHopeless is of a store with which no broker can work.
var ErrHopeless = errors.New("the store cannot be that of a queue")

// Settings are those of the Run.
type Settings struct {
	// Lease is how long a worker may be silent.
	Lease time.Duration
	// MaxAttempts is how many attempts may end badly.
	MaxAttempts int
	// Timeout is how long a program may take; 0 is any time.
	Timeout time.Duration
	// Open means that tasks can be added until the queue is drained.
	Open bool
}

// Record is what the store has when a broker begins.
type Record struct {
	// Epoch is which life of the broker this is, from 1.
	Epoch int
	// Inbox has the tasks, in order.
	Inbox []File
	// Done has the accepted token, Tries have the tokens of attempts that ended badly. Keys are
	// those of the store.
	Done  map[string]string
	Dead  map[string]bool
	Tries map[string][]string
	// Unpublished are tasks that are done, and whose result is not in the outbox.
	Unpublished []string
	// Drained means that no more tasks will come. That a queue was closed does not count: when
	// two brokers lived, one may have closed it while the other was given a task.
	Drained bool
}

// File is a file below the inbox.
type File struct {
	Name string
	Size int64
}

// State is all that a broker knows. Who has called Step with one uses the next one instead.
type State struct {
	Settings
	epoch int
	// clock is the time in which the broker was awake; seen is what the time was last.
	clock time.Duration
	seen  time.Time
	// tasks are in order; byName and ready have positions, ready those of tasks that can be leased.
	tasks  []*task
	byName map[string]int
	ready  []int
	// leased and paused have the positions of such tasks.
	leased, paused map[int]bool
	// adding are tasks that are being written into the inbox.
	adding map[string]bool
	// workers are those that have requested tasks; true means that they have ended.
	workers map[string]bool
	// leases counts them; operations counts what is being written.
	leases, operations int
	// nothing is leased before quiet is over.
	quiet                    time.Duration
	drained, closing, closed bool
	closedAt                 time.Duration
}

// task is one of them.
type task struct {
	name  string
	state string
	// busy means that something is being written of it.
	busy bool
	// token is that of the lease, or what was accepted.
	token, worker string
	until         time.Duration
	tries         []string
	// releases counts how often workers have given it back, in this life of the broker.
	releases int
	code     int
}

// New begins a life of the broker.
func New(settings Settings, record Record, now time.Time) (State, []Operation) {
	s := State{
		Settings: settings, epoch: record.Epoch, seen: now, drained: record.Drained,
		byName: map[string]int{}, leased: map[int]bool{}, paused: map[int]bool{}, adding: map[string]bool{}, workers: map[string]bool{},
	}
	if s.epoch > 1 {
		// Workers of the broker before go on: they renew their leases with this one first.
		s.quiet = s.Lease
	}
	var operations []Operation
	for _, file := range record.Inbox {
		operations = append(operations, s.load(file, record)...)
	}
	for _, name := range record.Unpublished {
		if at, there := s.byName[name]; there && s.tasks[at].state == queue.Done {
			operations = append(operations, s.operation(at, Operation{kind: republish, Writes: []Write{{Kind: Publish, Task: name, Token: s.tasks[at].token}}}))
		}
	}
	return s, append(operations, s.close()...)
}

// load adds a task in the state that the store says.
func (s *State) load(file File, record Record) []Operation {
	key := Key(file.Name)
	t := task{name: file.Name, state: queue.Pending, tries: record.Tries[key]}
	accepted, done := record.Done[key]
	switch {
	case done:
		t.state, t.token = queue.Done, accepted
	case record.Dead[key]:
		t.state = queue.Dead
	}
	at := s.add(t)
	if t.state != queue.Pending {
		return nil
	}
	reason := ""
	switch {
	case file.Size > queue.MaxBytes:
		reason = fmt.Sprintf("it is larger than %d MiB", queue.MaxBytes>>20)
	case !Named(file.Name):
		reason = "no task can have this name"
	case at >= queue.MaxTasks:
		reason = fmt.Sprintf("a queue has at most %d tasks", queue.MaxTasks)
	case len(t.tries) >= s.MaxAttempts:
		reason = fmt.Sprintf("it was tried %d times", len(t.tries))
	default:
		return nil
	}
	return []Operation{s.bury(at, reason)}
}

// bury gives up a task that cannot be tried.
func (s *State) bury(at int, reason string) Operation {
	s.end(at, queue.Pending, "")
	return s.operation(at, Operation{kind: burial, Writes: []Write{
		{Kind: CheckEpoch}, {Kind: Bury, Task: s.tasks[at].name, Log: &queue.Log{Reason: reason}},
	}})
}

func (s *State) add(t task) int {
	at := len(s.tasks)
	s.tasks = append(s.tasks, &t)
	s.byName[t.name] = at
	if t.state == queue.Pending {
		s.ready = append(s.ready, at)
	}
	return at
}

// free makes a task one that can be leased, in its order.
func (s *State) free(at int) {
	t := s.tasks[at]
	t.state, t.token, t.until = queue.Pending, "", 0
	delete(s.leased, at)
	delete(s.paused, at)
	if i, there := slices.BinarySearch(s.ready, at); !there {
		s.ready = slices.Insert(s.ready, i, at)
	}
}

// lend leases a task.
func (s *State) lend(at int, token, worker string) {
	t := s.tasks[at]
	t.state, t.token, t.worker, t.until = queue.Leased, token, worker, s.clock+s.Lease
	s.leased[at] = true
	delete(s.paused, at)
	if i, there := slices.BinarySearch(s.ready, at); there {
		s.ready = slices.Delete(s.ready, i, i+1)
	}
}

// end takes a task out of all lists.
func (s *State) end(at int, state, token string) {
	t := s.tasks[at]
	t.state, t.token = state, token
	delete(s.leased, at)
	delete(s.paused, at)
	if i, there := slices.BinarySearch(s.ready, at); there {
		s.ready = slices.Delete(s.ready, i, i+1)
	}
}

// Ended is whether the broker can end: all is written, and the workers know it.
func (s *State) Ended() bool {
	if !s.closed || s.operations > 0 {
		return false
	}
	bye := len(s.workers) > 0
	for _, gone := range s.workers {
		bye = bye && gone
	}
	return bye || s.clock >= s.closedAt+farewell
}

// Dead names tasks that were given up: how many there are, and the first of them.
func (s *State) Dead(first int) (int, []string) {
	var names []string
	count := 0
	for _, t := range s.tasks {
		if t.state != queue.Dead {
			continue
		}
		if count++; count <= first {
			names = append(names, t.name)
		}
	}
	return count, names
}

// Done is how many tasks are.
func (s *State) Done() int {
	count := 0
	for _, t := range s.tasks {
		if t.state == queue.Done {
			count++
		}
	}
	return count
}
