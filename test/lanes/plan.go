// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	// budget is how long after the start of continuous integration a heavy lane should have
	// ended.
	budget = 70 * time.Minute
	// closing is when continuous integration stops a running lane, so that it can still print
	// the table.
	closing = 85 * time.Minute
	// laneLimit is the maximum duration of a lane.
	laneLimit = 45 * time.Minute
	// unknownTime is the assumed duration of a lane that was never recorded.
	unknownTime = 25 * time.Minute
)

// situation is the input of a plan.
type situation struct {
	lanes   []lane
	log     map[string]record
	changed map[string]bool // lanes whose inputs have changed since they were recorded, or that have no record
	commit  string
	// What to run: in continuous integration, all lanes, the named ones, or the essential ones.
	ci, full bool
	names    []string
	// record is whether lanes that pass are recorded.
	record bool
	// cannot returns why a lane cannot run here, or "" if it can.
	cannot func(lane) string
}

// plan has the lanes to run, in order, and why the others do not run.
type plan struct {
	situation
	queue []lane
	left  map[string]string
}

func (s situation) plan() plan {
	p := plan{situation: s, left: map[string]string{}}
	for _, l := range s.lanes {
		switch {
		case len(s.names) > 0 && !slices.Contains(s.names, l.name):
			p.left[l.name] = "was not asked for"
		case s.asksFor(l):
			p.queue = append(p.queue, l)
		case !s.ci:
			p.left[l.name] = "not part of make test: run make test-full or make " + l.name
		}
	}
	if s.rotates() {
		p.queue = append(p.queue, s.rotation()...)
	}
	return p
}

func (s situation) asksFor(l lane) bool {
	return l.essential || s.full || slices.Contains(s.names, l.name)
}

// rotates reports whether heavy lanes run until time runs out.
func (s situation) rotates() bool { return s.ci && !s.full && len(s.names) == 0 }

// rotation returns the heavy lanes: first those whose inputs have changed, oldest success
// first, then the others. The commit determines which of these starts.
func (s situation) rotation() []lane {
	heavy := slices.DeleteFunc(slices.Clone(s.lanes), func(l lane) bool { return l.essential })
	if len(heavy) == 0 {
		return nil
	}
	begin := turn(s.commit, len(heavy))
	heavy = slices.Concat(heavy[begin:], heavy[:begin])
	slices.SortStableFunc(heavy, func(a, b lane) int {
		switch changedA, changedB := s.changed[a.name], s.changed[b.name]; {
		case changedA && changedB:
			return cmp.Compare(s.log[a.name].date, s.log[b.name].date)
		case changedA:
			return -1
		case changedB:
			return 1
		}
		return 0
	})
	return heavy
}

// turn maps a commit to a number below n. It uses the hash rather than the number of commits,
// which is always one in a shallow clone.
func turn(commit string, n int) int {
	number, err := strconv.ParseUint(commit[:min(len(commit), 8)], 16, 32)
	if err != nil {
		return 0 // not a commit
	}
	return int(number % uint64(n))
}

// errInterrupted is returned for an interrupted lane. No other lane starts after it.
var errInterrupted = errors.New("was interrupted")

// result is the result of a lane.
type result struct {
	ran         bool
	failed      bool     // also if it could not run
	cut         bool     // continuous integration had no time left for the rest of it
	flaky       bool     // it failed and, when it was run again, passed
	first       []string // the tests that failed before it passed
	interrupted bool     // nothing else starts
	took        time.Duration
	why         string // why it did not run, or failed
	said        string // what its tests said that failed
}

// attempt is how to run a lane.
type attempt struct {
	limit time.Duration
	again bool // it has failed before, in this run
}

// failure is why a lane did not pass, with the tests that failed before its time was over, and what they said.
type failure struct {
	error
	tests []string
	said  string
}

func (f *failure) Unwrap() error { return f.error }

func failedTests(err error) []string { return failureIn(err).tests }

func failureIn(err error) failure {
	if f, is := errors.AsType[*failure](err); is {
		return *f
	}
	return failure{}
}

// follow runs lanes one after the other. If an essential lane fails, no other starts; after a
// failed heavy lane, the others continue.
func (p plan) follow(run func(lane, attempt) error, elapsed func() time.Duration) map[string]result {
	results := map[string]result{}
	for name, why := range p.left {
		results[name] = result{why: why}
	}
	stopped := ""
	for _, l := range p.queue {
		switch why, cannot := p.wont(l, elapsed()), p.cannot(l); {
		case stopped != "":
			results[l.name] = result{why: stopped}
			continue
		case why != "":
			results[l.name] = result{why: why}
			continue
		case cannot != "":
			results[l.name] = result{failed: true, why: cannot}
		default:
			results[l.name] = p.try(l, run, elapsed)
		}
		switch r := results[l.name]; {
		case r.interrupted:
			stopped = "not started, because the run was interrupted"
		case l.essential && r.failed:
			stopped = "not started, because " + l.name + " failed"
		}
	}
	return results
}

// try runs a lane, and once more if that may show that it is flaky.
func (p plan) try(l lane, run func(lane, attempt) error, elapsed func() time.Duration) result {
	begin := elapsed()
	err := run(l, attempt{limit: p.limit(begin)})
	r := p.judge(l, err)
	if r.failed && p.triesAgain(l, err) {
		if why := p.wont(l, elapsed()); why != "" {
			r.why += "; not run again: " + why
		} else {
			r = judgeAgain(err, run(l, attempt{limit: p.limit(elapsed()), again: true}))
		}
	}
	r.ran, r.took = true, elapsed()-begin
	return r
}

// judge returns the result of a lane that ran. A test that failed counts also if there was no time for the rest.
func (p plan) judge(l lane, err error) result {
	cut := p.bounded(l) && errors.Is(err, errLate) && len(failedTests(err)) == 0
	return result{failed: err != nil && !cut, cut: cut, interrupted: errors.Is(err, errInterrupted), why: text(err), said: failureIn(err).said}
}

// triesAgain reports whether a lane that failed is run once more. What has changed must be right at once, and so must
// an essential lane.
func (p plan) triesAgain(l lane, err error) bool {
	unchanged, known := p.changed[l.name]
	unchanged = known && !unchanged
	return (p.rotates() || p.record) && !l.essential && unchanged && !errors.Is(err, errLate) && !errors.Is(err, errInterrupted)
}

// judgeAgain returns the result of a lane that has failed before. Only a second try that passes shows that it is
// flaky: one that has no time to end shows nothing, and the lane has failed.
func judgeAgain(first, second error) result {
	if second == nil {
		return result{flaky: true, first: failedTests(first), why: "failed at first: " + cmp.Or(strings.Join(failedTests(first), ", "), text(first))}
	}
	return result{failed: true, interrupted: errors.Is(second, errInterrupted), why: text(first) + "; when it was run again: " + text(second), said: failureIn(second).said}
}

// wont returns why there is no time for a lane, or "" if there is.
func (p plan) wont(l lane, elapsed time.Duration) string {
	if !p.bounded(l) {
		return ""
	}
	needs, left := p.expected(l), max(budget-elapsed, 0)
	if needs <= left {
		return ""
	}
	changed := "its inputs have not changed"
	if p.changed[l.name] {
		changed = "its inputs have changed"
	}
	return fmt.Sprintf("would not fit: needs %.0f minutes of %.0f that are left; %s", math.Ceil(needs.Minutes()), math.Floor(left.Minutes()), changed)
}

// bounded reports whether a lane gets only the time that is left. To run out of it says nothing
// of the code: the recorded duration is that of a warm machine.
func (p plan) bounded(l lane) bool { return p.rotates() && !l.essential }

// expected returns the recorded duration of a lane.
func (p plan) expected(l lane) time.Duration {
	if r, recorded := p.log[l.name]; recorded {
		return r.took
	}
	return unknownTime
}

// limit returns how long a lane that starts now may take.
func (p plan) limit(elapsed time.Duration) time.Duration {
	if p.ci {
		return max(min(laneLimit, closing-elapsed), 0)
	}
	return laneLimit
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
