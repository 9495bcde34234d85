// SPDX-License-Identifier: Apache-2.0

package taskqueue

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/mlbatch/mlbatch/controller/api/queue"
)

const (
	// farewell is how long a broker that has closed waits for workers.
	farewell = 30 * time.Second
	// After the first failure a task pauses for shortest; it doubles up to longest.
	shortest, longest = 10 * time.Second, 5 * time.Minute
	// mostReleases of a task are no tries, in one life of the broker.
	mostReleases = 20
)

// Request is one of the types below.
type Request any

// Requests of workers and people. Their words are those of the protocol.
type (
	// Lease requests a task.
	Lease struct{ Worker string }
	// Renew says that a worker still runs a task.
	Renew queue.Report
	// Result asks whether a result may be stored.
	Result queue.Report
	// Success asks that a result which is stored is accepted.
	Success queue.Report
	// Failure says that an attempt ended badly.
	Failure queue.Report
	// Release gives a task back.
	Release queue.Report
	// Add asks whether a task may be written into the inbox; Added says how that ended.
	Add struct{ Task string }
	// Added says whether it was written.
	Added struct {
		Task    string
		Written bool
	}
	// Drain says that no more tasks will come.
	Drain struct{}
	// Bye says that a worker ends.
	Bye struct{ Worker string }
	// Stat asks for the counts.
	Stat struct{}
	// Tick lets time pass. It comes several times in a lease.
	Tick struct{}
	// Written says that all writes of an operation are in the store.
	Written struct {
		Operation Operation
		// Accepted is the token that the store has for the task.
		Accepted string
		// Missing means that there is no result of the attempt, so that it was not accepted.
		Missing bool
	}
)

// Answer is that of HTTP. Without a code it comes when the operation is written.
type Answer struct {
	Code int
	Body any
}

// Codes of answers are those of HTTP.
const (
	OK       = 200
	Nothing  = 204
	Misnamed = 400
	Unknown  = 404
	Refused  = 409
	Closed   = 410
	Later    = 503
	Full     = 507
)

// Kind says what to write.
type Kind int

// Kinds of writes. All create something that may be there already, but for CheckEpoch, at which a
// broker ends if there is a later one, and Publish, which replaces.
const (
	CheckEpoch Kind = iota
	KeepLog
	Accept
	Publish
	Try
	Bury
	DrainQueue
	CloseQueue
)

// Write is one change of the store.
type Write struct {
	Kind        Kind
	Task, Token string
	Log         *queue.Log
	End         queue.End
}

// Operation is a list of writes, to be made in order and until each is known to be made. A Step
// with Written follows.
type Operation struct {
	Writes []Write
	kind   operationKind
	at     int
	task   string
	token  string
	code   int
	pause  bool
}

type operationKind int

const (
	republish operationKind = iota
	acceptance
	attempt
	burial
	draining
	closing
	addition
)

// Step is what a broker does about a request: what it writes, what it answers, what it knows then.
func Step(s State, request Request, now time.Time) ([]Operation, Answer, State) {
	s.awake(now)
	operations, answer := s.answer(request)
	return append(operations, s.close()...), answer, s
}

// awake lets time pass, but not the time in which the broker could not hear workers, and none
// backwards: a clock that jumps costs nobody a try.
func (s *State) awake(now time.Time) {
	s.clock += max(0, min(now.Sub(s.seen), s.Lease/3))
	s.seen = now
}

//nolint:cyclop // A row a request.
func (s *State) answer(request Request) ([]Operation, Answer) {
	switch r := request.(type) {
	case Lease:
		return nil, s.lease(r.Worker)
	case Renew:
		return nil, s.renew(queue.Report(r))
	case Result:
		return nil, s.result(queue.Report(r))
	case Success:
		return s.success(queue.Report(r))
	case Failure:
		return s.failure(queue.Report(r))
	case Release:
		return s.release(queue.Report(r))
	case Add:
		return nil, s.mayAdd(r.Task)
	case Added:
		return s.added(r)
	case Drain:
		return s.drain()
	case Bye:
		if _, known := s.workers[r.Worker]; known {
			s.workers[r.Worker] = true
		}
		return nil, granted
	case Stat:
		return nil, Answer{Code: OK, Body: s.stat()}
	case Tick:
		return s.tick(), granted
	case Written:
		return nil, s.written(r)
	}
	return nil, granted
}

func (s *State) lease(worker string) Answer {
	if s.closed {
		s.workers[worker] = false
		return Answer{Code: Closed}
	}
	s.workers[worker] = false
	if s.clock < s.quiet || len(s.ready) == 0 {
		return Answer{Code: Nothing}
	}
	at := s.ready[0]
	s.leases++
	s.lend(at, token(s.epoch, s.leases), worker)
	t := s.tasks[at]
	return Answer{Code: OK, Body: queue.Lease{
		Task: t.name, Token: t.token, LeaseSeconds: int(s.Lease.Seconds()), TimeoutSeconds: int(s.Timeout.Seconds()), Attempt: len(t.tries) + 1,
	}}
}

// holds is whether a report is from the holder of the lease. A token of an earlier life of the
// broker is that of a holder if nobody else is.
func (s *State) holds(at int, r queue.Report) bool {
	t := s.tasks[at]
	if t.state == queue.Leased {
		return t.token == r.Token
	}
	epoch, _, ok := parsed(r.Token)
	if t.state != queue.Pending || t.busy || !ok || epoch >= s.epoch || slices.Contains(t.tries, r.Token) {
		return false
	}
	s.lend(at, r.Token, r.Worker)
	return true
}

// issued is whether a token can have been in a lease.
func (s *State) issued(text string) bool {
	epoch, number, ok := parsed(text)
	return ok && (epoch < s.epoch || epoch == s.epoch && number <= s.leases)
}

var (
	unknown = Answer{Code: Unknown}
	refused = Answer{Code: Refused}
	later   = Answer{Code: Later}
	granted = Answer{Code: OK}
)

func (s *State) renew(r queue.Report) Answer {
	at, there := s.byName[r.Task]
	switch {
	case !there:
		return unknown
	case !s.holds(at, r):
		return refused
	}
	s.tasks[at].until = s.clock + s.Lease
	return granted
}

func (s *State) result(r queue.Report) Answer {
	at, there := s.byName[r.Task]
	switch {
	case !there:
		return unknown
	case !s.issued(r.Token), s.tasks[at].state == queue.Done && s.tasks[at].token != r.Token, s.closed && s.tasks[at].state != queue.Done:
		return refused
	}
	return granted
}

// success accepts the first result, whoever has the lease.
func (s *State) success(r queue.Report) ([]Operation, Answer) {
	at, there := s.byName[r.Task]
	if !there {
		return nil, unknown
	}
	t := s.tasks[at]
	switch {
	case t.state == queue.Done && t.token == r.Token:
		return nil, granted
	case t.state == queue.Done, s.closed, !s.issued(r.Token):
		return nil, refused
	case t.busy, s.closing:
		return nil, later
	}
	if r.Log == nil {
		r.Log = &queue.Log{Worker: r.Worker}
	}
	return []Operation{s.operation(at, Operation{kind: acceptance, token: r.Token, Writes: []Write{
		{Kind: KeepLog, Task: t.name, Token: r.Token, Log: r.Log},
		{Kind: Accept, Task: t.name, Token: r.Token},
		{Kind: Publish, Task: t.name},
	}})}, Answer{}
}

func (s *State) failure(r queue.Report) ([]Operation, Answer) {
	at, there := s.byName[r.Task]
	if !there {
		return nil, unknown
	}
	t := s.tasks[at]
	switch {
	case slices.Contains(t.tries, r.Token):
		return nil, granted // It was said before.
	case t.busy || s.closing:
		return nil, later
	case !s.holds(at, r):
		return nil, refused
	}
	if r.Log == nil {
		r.Log = &queue.Log{Worker: r.Worker}
	}
	return []Operation{s.try(at, *r.Log, true)}, Answer{}
}

// try records an attempt that ended badly, and gives up the task after the last one.
func (s *State) try(at int, log queue.Log, pause bool) Operation {
	t := s.tasks[at]
	writes := []Write{{Kind: Try, Task: t.name, Token: t.token, Log: &log}}
	if len(t.tries)+1 >= s.MaxAttempts {
		writes = append(writes, Write{Kind: CheckEpoch}, Write{Kind: Bury, Task: t.name, Token: t.token, Log: &log})
	}
	return s.operation(at, Operation{kind: attempt, token: t.token, code: log.Code, pause: pause, Writes: writes})
}

// release gives a task back, which is no try. But a program can end its worker, for example by
// filling the disk: a task that was given back too often has failed each time after.
func (s *State) release(r queue.Report) ([]Operation, Answer) {
	at, there := s.byName[r.Task]
	switch {
	case !there:
		return nil, unknown
	case s.tasks[at].busy:
		return nil, later
	case !s.holds(at, r):
		return nil, refused
	}
	if s.tasks[at].releases++; s.tasks[at].releases > mostReleases {
		return []Operation{s.try(at, queue.Log{Worker: s.tasks[at].worker, Reason: "released"}, true)}, Answer{}
	}
	s.free(at)
	return nil, granted
}

func (s *State) mayAdd(name string) Answer {
	_, there := s.byName[name]
	switch {
	case !Named(name):
		return Answer{Code: Misnamed}
	case !s.Open || s.drained || s.closing || s.closed:
		return Answer{Code: Closed}
	case there || s.adding[name]:
		return refused
	case len(s.tasks)+len(s.adding) >= queue.MaxTasks:
		return Answer{Code: Full}
	}
	s.adding[name] = true
	return granted
}

// added looks for a later broker when the task is written: one that begins after that finds it.
func (s *State) added(r Added) ([]Operation, Answer) {
	if !r.Written {
		delete(s.adding, r.Task)
		return nil, granted
	}
	return []Operation{s.operation(-1, Operation{kind: addition, task: r.Task, Writes: []Write{{Kind: CheckEpoch}}})}, Answer{}
}

func (s *State) drain() ([]Operation, Answer) {
	if s.drained {
		return nil, granted
	}
	return []Operation{s.operation(-1, Operation{kind: draining, Writes: []Write{{Kind: DrainQueue}, {Kind: CheckEpoch}}})}, Answer{}
}

// tick ends pauses, and the leases of silent workers.
func (s *State) tick() []Operation {
	for at := range s.paused {
		if s.tasks[at].until <= s.clock {
			s.free(at)
		}
	}
	var operations []Operation
	for _, at := range slices.Sorted(maps.Keys(s.leased)) {
		if t := s.tasks[at]; !t.busy && t.until <= s.clock {
			operations = append(operations, s.try(at, queue.Log{Worker: t.worker, Reason: "expired"}, false))
		}
	}
	return operations
}

// close ends the queue when no task is left and none can come.
func (s *State) close() []Operation {
	over := !s.Open || s.drained
	if !over || s.closing || s.closed || s.operations > 0 || len(s.adding)+len(s.leased)+len(s.ready)+len(s.paused) > 0 {
		return nil
	}
	s.closing = true
	dead, _ := s.Dead(0)
	end := queue.End{Succeeded: s.Done(), Failed: dead}
	return []Operation{s.operation(-1, Operation{kind: closing, Writes: []Write{{Kind: CheckEpoch}, {Kind: CloseQueue, End: end}}})}
}

func (s *State) operation(at int, o Operation) Operation {
	o.at = at
	s.operations++
	if at >= 0 {
		s.tasks[at].busy = true
	}
	return o
}

// written is what an operation comes to.
func (s *State) written(w Written) Answer {
	o := w.Operation
	s.operations--
	if o.at < 0 {
		s.writtenOfAll(o)
		return granted
	}
	t := s.tasks[o.at]
	t.busy = false
	switch o.kind {
	case acceptance:
		if w.Missing {
			return refused
		}
		s.end(o.at, queue.Done, w.Accepted)
		if w.Accepted != o.token {
			return refused
		}
	case attempt:
		s.tried(o)
	case burial:
		s.end(o.at, queue.Dead, "")
	}
	return granted
}

// writtenOfAll is what an operation of no one task comes to.
func (s *State) writtenOfAll(o Operation) {
	switch o.kind {
	case draining:
		s.drained = true
	case closing:
		s.closed, s.closing, s.closedAt = true, false, s.clock
	case addition:
		delete(s.adding, o.task)
		s.add(task{name: o.task, state: queue.Pending})
	}
}

func (s *State) tried(o Operation) {
	t := s.tasks[o.at]
	t.tries, t.code = append(t.tries, o.token), o.code
	if len(t.tries) >= s.MaxAttempts {
		s.end(o.at, queue.Dead, "")
		return
	}
	s.free(o.at)
	if o.pause {
		s.end(o.at, queue.Pending, "")
		t.until = s.clock + min(longest, shortest<<min(len(t.tries)-1, 10))
		s.paused[o.at] = true
	}
}

// order is that of states in a Stat.
var order = []string{queue.Dead, queue.Leased, queue.Pending, queue.Done}

func (s *State) stat() queue.Stat {
	counts := map[string]int{}
	for _, t := range s.tasks {
		counts[t.state]++
	}
	stat := queue.Stat{
		Pending: counts[queue.Pending], Leased: counts[queue.Leased], Done: counts[queue.Done], Dead: counts[queue.Dead],
		Open: s.Open, Drained: s.drained, Closed: s.closed, More: len(s.tasks) > queue.MaxTold,
	}
	for _, state := range order {
		for _, t := range s.tasks {
			if t.state == state && len(stat.Tasks) < queue.MaxTold {
				stat.Tasks = append(stat.Tasks, queue.Task{Name: t.name, State: t.state, Attempts: len(t.tries), Worker: t.worker, Code: t.code})
			}
		}
	}
	return stat
}

// Waits is how long a broker may sleep between two Ticks.
func (s *State) Waits() time.Duration {
	return cmp.Or(min(time.Second, s.Lease/10), time.Second)
}
