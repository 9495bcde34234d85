// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"
)

const (
	// budget is how long after the start continuous integration may expect a heavy lane to end.
	budget = 70 * time.Minute
	// closing is when continuous integration ends what still runs, while the table can still be printed.
	closing = 85 * time.Minute
	// laneLimit is how long a lane may take.
	laneLimit = 45 * time.Minute
	// unknownTime is what a lane counts as that was never recorded.
	unknownTime = 25 * time.Minute
)

// situation is what a plan is made from.
type situation struct {
	lanes   []lane
	log     map[string]record
	changed map[string]bool // lanes whose inputs changed since they were recorded, or that never were
	commit  string
	// What was asked for: continuous integration, all lanes, some, or the essential ones.
	ci, full bool
	names    []string
	// cannot tells why a lane cannot run here; empty if it can.
	cannot func(lane) string
}

// plan is which lanes may run, in which order, and why the others do not.
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

// rotates tells whether heavy lanes run as long as there is time.
func (s situation) rotates() bool { return s.ci && !s.full && len(s.names) == 0 }

// rotation are the heavy lanes: those whose inputs changed, which was longest ago green
// first, then the others. The commit tells with which the round begins.
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

// turn is a number below n that is the commit's own. The hash tells it, and not the number
// of commits: in a shallow clone that is always one.
func turn(commit string, n int) int {
	number, err := strconv.ParseUint(commit[:min(len(commit), 8)], 16, 32)
	if err != nil {
		return 0 // there is no commit
	}
	return int(number % uint64(n))
}

// errInterrupted is the end of a lane that somebody interrupted: no other begins.
var errInterrupted = errors.New("was interrupted")

// result is what became of a lane.
type result struct {
	ran    bool
	failed bool // also if it could not run
	took   time.Duration
	why    string // it did not run, or failed
}

// follow runs lanes one after the other. An essential one that fails ends it all; after a
// heavy one the others go on.
func (p plan) follow(run func(lane, time.Duration) error, elapsed func() time.Duration) map[string]result {
	results := map[string]result{}
	for name, why := range p.left {
		results[name] = result{why: why}
	}
	stopped := ""
	for _, l := range p.queue {
		begin := elapsed()
		switch why, cannot := p.wont(l, begin), p.cannot(l); {
		case stopped != "":
			results[l.name] = result{why: stopped}
			continue
		case why != "":
			results[l.name] = result{why: why}
			continue
		case cannot != "":
			results[l.name] = result{failed: true, why: cannot}
		default:
			err := run(l, p.limit(begin))
			results[l.name] = result{ran: true, failed: err != nil, took: elapsed() - begin, why: text(err)}
			if errors.Is(err, errInterrupted) {
				stopped = "not started, because the run was interrupted"
				continue
			}
		}
		if l.essential && results[l.name].failed {
			stopped = "not started, because " + l.name + " failed"
		}
	}
	return results
}

// wont tells why there is no time for a lane; empty if there is.
func (p plan) wont(l lane, elapsed time.Duration) string {
	if !p.rotates() || l.essential {
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

// expected is how long a lane took when it was recorded.
func (p plan) expected(l lane) time.Duration {
	if r, recorded := p.log[l.name]; recorded {
		return r.took
	}
	return unknownTime
}

// limit is how long a lane that begins now may take.
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
