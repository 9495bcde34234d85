// SPDX-License-Identifier: Apache-2.0

package taskqueue

import (
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mlbatch/mlbatch/controller/api/queue"
)

// desk has a queue whose writes are made at once.
type desk struct {
	*testing.T
	state State
	now   time.Time
	wrote []Write
	// accepted is what done/T has of another broker.
	accepted string
	missing  bool
}

func begun(t *testing.T, settings Settings, record Record) *desk {
	d := &desk{T: t, now: time.Unix(1_800_000_000, 0)}
	if settings.Lease == 0 {
		settings.Lease, settings.MaxAttempts = 30*time.Second, 3
	}
	record.Epoch = max(record.Epoch, 1)
	var operations []Operation
	d.state, operations = New(settings, record, d.now)
	d.write(operations)
	return d
}

func files(names ...string) Record {
	var record Record
	for _, name := range names {
		record.Inbox = append(record.Inbox, File{Name: name})
	}
	return record
}

func (d *desk) write(operations []Operation) (last Answer) {
	for _, o := range operations {
		written := Written{Operation: o}
		for _, w := range o.Writes {
			d.wrote = append(d.wrote, w)
			if w.Kind == Accept {
				written.Accepted, written.Missing = w.Token, d.missing
				if d.accepted != "" {
					written.Accepted = d.accepted
				}
			}
		}
		if said := d.ask(written); last.Code == 0 {
			last = said
		}
	}
	return last
}

func (d *desk) ask(request Request) Answer {
	operations, answer, next := Step(d.state, request, d.now)
	d.state = next
	if said := d.write(operations); answer.Code == 0 {
		return said
	}
	return answer
}

func (d *desk) want(code int, request Request) {
	d.Helper()
	if got := d.ask(request); got.Code != code {
		d.Errorf("%T %+v is answered %d, not %d", request, request, got.Code, code)
	}
}

func (d *desk) leased(worker string) queue.Lease {
	d.Helper()
	answer := d.ask(Lease{Worker: worker})
	lease, ok := answer.Body.(queue.Lease)
	if !ok {
		d.Fatalf("%s gets no task: %d", worker, answer.Code)
	}
	return lease
}

// after lets time pass as it does: with a tick each second.
func (d *desk) after(length time.Duration) {
	for range int(length / time.Second) {
		d.now = d.now.Add(time.Second)
		d.ask(Tick{})
	}
}

func of(l queue.Lease) queue.Report { return queue.Report{Task: l.Task, Token: l.Token, Worker: "w"} }

// second is the token of the second task, which is leased. The first one is given back.
func (d *desk) second() string {
	first := d.leased("w")
	token := d.leased("w").Token
	d.want(OK, Release(of(first)))
	return token
}

func (d *desk) stat() queue.Stat { return d.ask(Stat{}).Body.(queue.Stat) }

func TestTheRowsOfTheTable(t *testing.T) {
	for name, row := range map[string]func(d *desk){
		"a lease is of the oldest task": func(d *desk) {
			if l := d.leased("w"); l.Task != "a" || l.Token != "1.1" || l.Attempt != 1 || l.LeaseSeconds != 30 {
				d.Errorf("%+v", l)
			}
			if l := d.leased("v"); l.Task != "b" || l.Token != "1.2" {
				d.Errorf("%+v", l)
			}
			d.want(Nothing, Lease{Worker: "u"})
		},
		"a renewed lease does not expire": func(d *desk) {
			l := d.leased("w")
			for range 10 {
				d.after(20 * time.Second)
				d.want(OK, Renew(of(l)))
			}
		},
		"an expired lease is a try, and the task pending at once": func(d *desk) {
			l := d.leased("w")
			d.after(31 * time.Second)
			d.want(Refused, Renew(of(l)))
			if again := d.leased("v"); again.Task != "a" || again.Attempt != 2 {
				d.Errorf("%+v", again)
			}
		},
		"the first success counts, lease or not": func(d *desk) {
			l := d.leased("w")
			d.after(31 * time.Second)
			again := d.leased("v")
			d.want(OK, Success(of(l)))
			d.want(OK, Success(of(l)))
			d.want(Refused, Success(of(again)))
			d.want(Refused, Renew(of(again)))
			d.want(Refused, Result(of(again)))
			d.want(Refused, Failure(of(again)))
		},
		"what another broker has accepted is adopted": func(d *desk) {
			d.accepted = "9.9"
			l := d.leased("w")
			d.want(Refused, Success(of(l)))
			d.want(OK, Success{Task: "a", Token: "9.9"})
		},
		"nothing is accepted without a result": func(d *desk) {
			d.missing = true
			d.want(Refused, Success(of(d.leased("w"))))
			if s := d.stat(); s.Done != 0 || s.Leased != 1 {
				d.Errorf("%+v", s)
			}
		},
		"tokens that were never given count nothing": func(d *desk) {
			for _, token := range []string{"", "1", "1.1", "2.1", "0.1", "01.1", "1.-1", "x", "../x", "1.1/.."} {
				d.want(Refused, Success{Task: "a", Token: token})
				d.want(Refused, Result{Task: "a", Token: token})
				d.want(Refused, Renew{Task: "a", Token: token})
			}
			d.want(Unknown, Success{Task: "none", Token: "1.1"})
			d.want(Unknown, Renew{Task: "none", Token: "1.1"})
			d.want(Unknown, Result{Task: "none", Token: "1.1"})
			d.want(Unknown, Failure{Task: "none", Token: "1.1"})
			d.want(Unknown, Release{Task: "none", Token: "1.1"})
		},
		"a failure pauses the task, twice as long each time, and the last is its death": func(d *desk) {
			d.leased("other") // b is first, once a has failed
			d.want(OK, Release{Task: "a", Token: "1.1"})
			for k, pause := range []time.Duration{10 * time.Second, 20 * time.Second} {
				l := d.leased("w")
				if l.Task != "a" || l.Attempt != k+1 {
					d.Fatalf("%+v", l)
				}
				d.want(OK, Failure(of(l)))
				d.want(OK, Failure(of(l)))
				b := d.leased("v")
				if b.Task != "b" {
					d.Fatalf("%+v came before its pause was over", b)
				}
				for range int(pause/time.Second) - 1 {
					d.after(time.Second)
					d.want(OK, Renew(of(b)))
				}
				d.want(Nothing, Lease{Worker: "w"})
				d.after(time.Second)
				d.want(OK, Release(of(b)))
			}
			d.want(OK, Failure(of(d.leased("w"))))
			if s := d.stat(); s.Dead != 1 || s.Tasks[0].Name != "a" || s.Tasks[0].Attempts != 3 {
				d.Errorf("%+v", s)
			}
			d.want(OK, Success{Task: "a", Token: "1.2"}) // Where both are, done counts.
		},
		"a failure is only the holder's": func(d *desk) {
			d.leased("w")
			d.want(Refused, Failure{Task: "a", Token: "1.7"})
		},
		"a release is no try": func(d *desk) {
			l := d.leased("w")
			d.want(OK, Release(of(l)))
			d.want(Refused, Release(of(l)))
			if again := d.leased("w"); again.Task != "a" || again.Attempt != 1 {
				d.Errorf("%+v", again)
			}
		},
		"a task that ends its workers, again and again, is given up": func(d *desk) {
			d.want(OK, Success{Task: "b", Token: d.second()})
			for range 19 {
				l := d.leased("w")
				d.want(OK, Release(of(l)))
				if l.Attempt != 1 {
					d.Fatalf("it was a try: %+v", l)
				}
			}
			for range 3 {
				d.want(OK, Release(of(d.leased("w"))))
				d.after(time.Minute)
			}
			if s := d.stat(); s.Dead != 1 || !s.Closed || s.Tasks[0].Attempts != 3 {
				d.Errorf("%+v", s)
			}
		},
		"a clock that jumps is no try": func(d *desk) {
			l := d.leased("w")
			for _, jump := range []time.Duration{time.Hour, -2 * time.Hour} {
				d.now = d.now.Add(jump)
				d.ask(Tick{})
				d.want(OK, Renew(of(l)))
			}
		},
		"a queue that is not open takes no task": func(d *desk) { d.want(Closed, Add{Task: "c"}) },
		"all done is closed, and the workers are told": func(d *desk) {
			d.want(OK, Success(of(d.leased("w"))))
			d.want(OK, Success(of(d.leased("v"))))
			d.want(Closed, Lease{Worker: "w"})
			d.want(OK, Bye{Worker: "w"})
			if d.state.Ended() {
				d.Error("it ended before v said bye")
			}
			d.want(OK, Bye{Worker: "v"})
			if !d.state.Ended() {
				d.Error("it did not end when all workers had said bye")
			}
		},
		"a broker does not wait for long": func(d *desk) {
			d.want(OK, Success(of(d.leased("w"))))
			d.want(OK, Success(of(d.leased("w"))))
			d.after(29 * time.Second)
			if d.state.Ended() {
				d.Error("it ended before 30 s")
			}
			d.after(2 * time.Second)
			if !d.state.Ended() {
				d.Error("it did not end")
			}
		},
	} {
		t.Run(name, func(t *testing.T) { row(begun(t, Settings{}, files("a", "b"))) })
	}
}

func TestAResultIsPublishedAfterItIsAccepted(t *testing.T) {
	d := begun(t, Settings{}, files("a"))
	d.ask(Success(of(d.leased("w"))))
	var kinds []Kind
	for _, w := range d.wrote {
		kinds = append(kinds, w.Kind)
	}
	if got, want := fmt.Sprint(kinds), fmt.Sprint([]Kind{KeepLog, Accept, Publish, CheckEpoch, CloseQueue}); got != want {
		t.Errorf("the writes are %s, not %s", got, want)
	}
}

// A broker that follows another leases nothing for a lease: workers go on.
func TestTheTimeAwayIsNobodysTry(t *testing.T) {
	record := files("a", "b", "c")
	record.Epoch, record.Tries = 2, map[string][]string{"b": {"1.2"}}
	d := begun(t, Settings{}, record)
	d.want(Nothing, Lease{Worker: "w"})
	d.want(OK, Renew{Task: "a", Token: "1.1", Worker: "v"})
	d.want(Refused, Renew{Task: "a", Token: "1.3"})
	d.want(Refused, Renew{Task: "b", Token: "1.2"}) // It was a try.
	d.want(Refused, Renew{Task: "c", Token: "2.1"}) // This broker has leased nothing yet.
	for range 29 {
		d.after(time.Second)
		d.want(OK, Renew{Task: "a", Token: "1.1"})
		d.want(Nothing, Lease{Worker: "w"})
	}
	d.after(time.Second)
	if l := d.leased("w"); l.Task != "b" || l.Attempt != 2 || l.Token != "2.1" {
		t.Errorf("%+v", l)
	}
}

func TestAnOpenQueue(t *testing.T) {
	d := begun(t, Settings{Open: true, Lease: 30 * time.Second, MaxAttempts: 3}, files("a"))
	d.want(OK, Success(of(d.leased("w"))))
	d.want(Nothing, Lease{Worker: "w"})
	d.want(Refused, Add{Task: "a"})
	for _, name := range []string{"", ".", "..", "../x", "a/../b", "/x", "a//b", "a/", "x\x00", "\xff", strings.Repeat("x", 201)} {
		d.want(Misnamed, Add{Task: name})
	}
	d.want(OK, Add{Task: "b"})
	d.want(Refused, Add{Task: "b"})
	d.want(OK, Drain{})
	if d.stat().Closed {
		t.Error("it closed while a task was being written")
	}
	d.want(OK, Added{Task: "b", Written: true})
	d.want(Closed, Add{Task: "c"})
	d.want(OK, Success(of(d.leased("w"))))
	if s := d.stat(); !s.Closed || s.Done != 2 {
		t.Errorf("%+v", s)
	}
}

func TestWhatCannotBeTriedIsDead(t *testing.T) {
	d := begun(t, Settings{}, Record{
		Inbox: []File{{"fine", queue.MaxBytes}, {"large", queue.MaxBytes + 1}, {strings.Repeat("ü", 100), 1}, {"\xff", 1}, {"tried", 1}},
		Tries: map[string][]string{"tried": {"1.1", "1.2", "1.3"}},
	})
	if s := d.stat(); s.Dead != 4 || s.Pending != 1 {
		t.Errorf("%+v", s)
	}
	var reasons []string
	for _, w := range d.wrote {
		if w.Kind == Bury && w.Log != nil {
			reasons = append(reasons, w.Log.Reason)
		}
	}
	want := []string{"it is larger than 256 MiB", "no task can have this name", "no task can have this name", "it was tried 3 times"}
	if !slices.Equal(reasons, want) {
		t.Errorf("the store says why: %q", reasons)
	}
}

// No key is a path, and no two names have one key.
func TestKeysAreNoPaths(t *testing.T) {
	seen := map[string]string{}
	for _, name := range []string{".", "..", "...", "%2E", "%2E%2E", "a/b", "a%2Fb", "../a", "/", "A", "a", strings.Repeat("a", 201), strings.Repeat("a", 202), strings.Repeat("a", 200)} {
		key := Key(name)
		if other, there := seen[key]; there || strings.Contains(key, "/") || path.Clean("x/"+key) != "x/"+key || len(key) > 255 {
			t.Errorf("%q has the key %q, which %q has", name, key, other)
		}
		seen[key] = name
	}
}

func TestAnEmptyInboxClosesAtOnce(t *testing.T) {
	if !begun(t, Settings{}, Record{}).stat().Closed {
		t.Error("it is not closed")
	}
}

func TestAHundredThousandTasks(t *testing.T) {
	var record Record
	for i := range queue.MaxTasks + 2 {
		record.Inbox = append(record.Inbox, File{Name: fmt.Sprintf("%06d", i)})
	}
	d := begun(t, Settings{}, record)
	if s := d.stat(); s.Dead != 2 || s.Pending != queue.MaxTasks || len(s.Tasks) != queue.MaxTold || !s.More || s.Tasks[0].State != queue.Dead {
		t.Errorf("%d dead, %d pending, %d told", s.Dead, s.Pending, len(s.Tasks))
	}
}

// FuzzStep: no report of a worker stops the broker, or changes what was accepted.
func FuzzStep(f *testing.F) {
	f.Add([]byte(`{"task":"a","token":"1.1"}`), byte(3))
	f.Fuzz(func(t *testing.T, text []byte, sort byte) {
		var r queue.Report
		if json.Unmarshal(text, &r) != nil {
			return
		}
		d := begun(t, Settings{}, files("a", "b"))
		d.want(OK, Success(of(d.leased("w"))))
		d.leased("v")
		for i := range byte(8) {
			d.ask([]Request{
				Renew(r), Result(r), Success(r), Failure(r), Release(r), Add{r.Task}, Lease{r.Worker}, Bye{r.Worker},
			}[(sort+i)%8])
		}
		d.want(OK, Success{Task: "a", Token: "1.1"})
	})
}
