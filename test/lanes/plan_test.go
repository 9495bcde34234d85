// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// small are two essential lanes and four heavy ones.
var small = []lane{{name: "lint", essential: true}, {name: "e2e", essential: true, root: true}, {name: "a"}, {name: "b"}, {name: "c"}, {name: "d"}}

// took is a record with this duration and a day in January.
func took(minutes float64, day int) record {
	return record{took: time.Duration(minutes * float64(time.Minute)), commit: "0123456789ab", date: fmt.Sprintf("2026-01-%02d", day)}
}

// evenly is a log in which each lane took the same time.
func evenly(minutes float64) map[string]record {
	log := map[string]record{}
	for _, l := range small {
		log[l.name] = took(minutes, 1)
	}
	return log
}

func names(queue []lane) (all []string) {
	for _, l := range queue {
		all = append(all, l.name)
	}
	return all
}

func TestOrder(t *testing.T) {
	changed := func(names ...string) map[string]bool {
		m := map[string]bool{}
		for _, name := range names {
			m[name] = true
		}
		return m
	}
	cases := map[string]struct {
		situation
		want string
	}{
		"make test runs the essential lanes":                           {situation{}, "lint e2e"},
		"make test-full runs all in the order of the table":            {situation{full: true, commit: "1"}, "lint e2e a b c d"},
		"make test-full in continuous integration runs all as well":    {situation{full: true, ci: true, commit: "1"}, "lint e2e a b c d"},
		"lanes that are named run in the order of the table":           {situation{names: []string{"c", "lint"}}, "lint c"},
		"continuous integration adds the heavy ones":                   {situation{ci: true, commit: "4"}, "lint e2e a b c d"},
		"the commit tells where the round begins":                      {situation{ci: true, commit: "2"}, "lint e2e c d a b"},
		"another commit begins elsewhere":                              {situation{ci: true, commit: "0000000fff"}, "lint e2e d a b c"},
		"without a commit the round begins at the top":                 {situation{ci: true}, "lint e2e a b c d"},
		"a lane whose inputs changed comes first":                      {situation{ci: true, commit: "2", changed: changed("b")}, "lint e2e b c d a"},
		"of two that changed, the one that was green longest ago":      {situation{ci: true, commit: "2", changed: changed("a", "d"), log: map[string]record{"a": took(1, 2), "d": took(1, 3)}}, "lint e2e a d c b"},
		"one that was never green comes before one that was":           {situation{ci: true, changed: changed("a", "d"), log: map[string]record{"a": took(1, 2)}}, "lint e2e d a b c"},
		"of those that were never green the commit tells which begins": {situation{ci: true, commit: "2", changed: changed("a", "d")}, "lint e2e d a c b"},
		"what is unchanged does not come first for being old":          {situation{ci: true, log: map[string]record{"a": took(1, 9), "b": took(1, 1)}}, "lint e2e a b c d"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			c.lanes = small
			if got := strings.Join(names(c.plan().queue), " "); got != c.want {
				t.Errorf("the order is %q, not %q", got, c.want)
			}
		})
	}
}

func TestTheRoundBeginsEverywhere(t *testing.T) {
	begins := map[int]bool{}
	for i := range 16 {
		begins[turn(fmt.Sprintf("%08x99", i), len(small))] = true
	}
	if len(begins) != len(small) {
		t.Errorf("commits begin the round in %d of %d places", len(begins), len(small))
	}
}

// life runs a plan with lanes whose duration and result the test sets.
type life struct {
	minutes map[string]float64 // default: 10
	fails   []string
	late    []string
	ends    string // the lane that is interrupted
	cannot  []string
}

// follow returns the lanes that ran, in order.
func (l life) follow(s situation) (ran []string, limits map[string]time.Duration, results map[string]result) {
	var now time.Duration
	limits = map[string]time.Duration{}
	s.lanes = small
	s.cannot = func(one lane) string {
		if slices.Contains(l.cannot, one.name) {
			return "needs root"
		}
		return ""
	}
	results = s.plan().follow(func(one lane, a attempt) error {
		minutes, told := l.minutes[one.name]
		if !told {
			minutes = 10
		}
		now += time.Duration(minutes * float64(time.Minute))
		ran = append(ran, one.name)
		limits[one.name] = a.limit
		if one.name == l.ends {
			return errInterrupted
		}
		if slices.Contains(l.late, one.name) {
			return fmt.Errorf("%w 19m", errLate)
		}
		if slices.Contains(l.fails, one.name) {
			return errors.New("exit status 2")
		}
		return nil
	}, func() time.Duration { return now })
	return ran, limits, results
}

func TestWhatRunsAndWhatDoesNot(t *testing.T) {
	ci := situation{ci: true}
	cases := map[string]struct {
		situation
		life
		ran    string
		failed string
		why    map[string]string
	}{
		"a heavy lane that is late in continuous integration has not failed": {ci, life{late: []string{"a"}}, "lint e2e a b c", "", map[string]string{"a": "did not end within 19m"}},
		"a heavy lane that is late elsewhere has failed":                     {situation{full: true, ci: true}, life{late: []string{"a"}}, "lint e2e a b c d", "a", map[string]string{"a": "did not end within 19m"}},
		"an essential lane that is late has failed": {
			ci, life{late: []string{"e2e"}}, "lint e2e", "e2e", map[string]string{"e2e": "did not end within 19m", "a": "not started, because e2e failed"},
		},
		"make test leaves heavy lanes to make test-full": {situation{}, life{}, "lint e2e", "", map[string]string{"a": "not part of make test: run make test-full or make a"}},
		"what was not named says so":                     {situation{names: []string{"b"}}, life{}, "b", "", map[string]string{"lint": "was not asked for", "a": "was not asked for"}},
		"the budget ends the round": {
			situation{ci: true, log: evenly(22)}, life{minutes: map[string]float64{"a": 22, "b": 22}}, "lint e2e a b", "",
			map[string]string{"c": "would not fit: needs 22 minutes of 6 that are left; its inputs have not changed"},
		},
		"a lane that just fits runs": {situation{ci: true, log: evenly(12.5)}, life{minutes: map[string]float64{"a": 12.5, "b": 12.5, "c": 12.5}}, "lint e2e a b c d", "", nil},
		"a shorter lane runs where a longer one would not fit": {
			situation{ci: true, log: map[string]record{"a": took(51, 1), "b": took(49, 1), "c": took(41, 1), "d": took(40, 1)}}, life{}, "lint e2e b d", "",
			map[string]string{"a": "would not fit: needs 51 minutes of 50 that are left; its inputs have not changed"},
		},
		"a lane without a record counts as 25 minutes": {
			ci, life{minutes: map[string]float64{"a": 26}}, "lint e2e a", "",
			map[string]string{"b": "would not fit: needs 25 minutes of 24 that are left; its inputs have not changed"},
		},
		"a lane that is due and does not fit says so": {
			situation{ci: true, changed: map[string]bool{"a": true}}, life{minutes: map[string]float64{"e2e": 40}}, "lint e2e", "",
			map[string]string{"a": "would not fit: needs 25 minutes of 20 that are left; its inputs have changed"},
		},
		"essential lanes run also when the budget is spent": {
			ci, life{minutes: map[string]float64{"lint": 75}}, "lint e2e", "",
			map[string]string{"a": "would not fit: needs 25 minutes of 0 that are left; its inputs have not changed"},
		},
		"an essential lane that fails ends the run": {
			ci, life{fails: []string{"lint"}}, "lint", "lint",
			map[string]string{"lint": "exit status 2", "e2e": "not started, because lint failed", "a": "not started, because lint failed"},
		},
		"after a heavy lane that fails the others go on": {situation{full: true}, life{fails: []string{"a"}}, "lint e2e a b c d", "a", map[string]string{"a": "exit status 2"}},
		"a lane that is interrupted ends the run": {
			situation{full: true}, life{ends: "a"}, "lint e2e a", "a",
			map[string]string{"a": "was interrupted", "b": "not started, because the run was interrupted"},
		},
		"without root an essential lane has failed": {situation{}, life{cannot: []string{"e2e"}}, "lint", "e2e", map[string]string{"e2e": "needs root"}},
		"without root a heavy lane has failed and others run": {
			situation{full: true}, life{cannot: []string{"b"}}, "lint e2e a c d", "b", map[string]string{"b": "needs root"},
		},
		"what fails and has changed fails at once": {
			situation{ci: true, changed: map[string]bool{"a": true}}, life{fails: []string{"a"}}, "lint e2e a b c", "a", map[string]string{"a": "exit status 2"},
		},
		"without a budget everything runs": {situation{full: true, ci: true, log: evenly(99)}, life{}, "lint e2e a b c d", "", nil},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			ran, _, results := c.follow(c.situation)
			if got := strings.Join(ran, " "); got != c.ran {
				t.Errorf("ran %q, not %q", got, c.ran)
			}
			failed := ""
			for lane, r := range results {
				if r.failed {
					failed += lane
				}
				if r.ran != slices.Contains(ran, lane) {
					t.Errorf("the result says wrongly whether %s ran", lane)
				}
			}
			if failed != c.failed {
				t.Errorf("failed is %q, not %q", failed, c.failed)
			}
			for lane, want := range c.why {
				if got := results[lane].why; got != want {
					t.Errorf("%s: %q, not %q", lane, got, want)
				}
			}
			for _, l := range small {
				if r, ok := results[l.name]; !ok || !r.ran && r.why == "" {
					t.Errorf("%s neither runs nor has a reason not to", l.name)
				}
			}
		})
	}
}

func TestALaneIsGivenTheTimeThereIs(t *testing.T) {
	cases := map[string]struct {
		situation
		want map[string]time.Duration
	}{
		"45 minutes on a machine of one's own": {situation{}, map[string]time.Duration{"lint": 45 * time.Minute, "e2e": 45 * time.Minute}},
		"in continuous integration no more than is left of 85": {
			situation{ci: true, changed: map[string]bool{}}, map[string]time.Duration{"lint": 45 * time.Minute, "e2e": 35 * time.Minute},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			_, limits, _ := life{minutes: map[string]float64{"lint": 50, "e2e": 20}}.follow(c.situation)
			if diff := cmp.Diff(c.want, limits); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// unchanged has no lane whose inputs have changed.
func unchanged() map[string]bool {
	return map[string]bool{"lint": false, "e2e": false, "a": false, "b": false, "c": false, "d": false}
}

func TestALaneThatFailsWithoutAChangeIsRunOnceMore(t *testing.T) {
	failed, late, interrupted := &failure{error: errors.New("exit status 2"), tests: []string{"TestA", "TestB"}}, fmt.Errorf("%w 9m", errLate), errInterrupted
	ci := situation{ci: true, changed: unchanged()}
	for name, c := range map[string]struct {
		situation
		lane    string
		minutes float64
		tries   []error
		want    result
		others  bool // the lanes after it run
	}{
		"that passes then is flaky": {
			ci, "a", 10, []error{failed, nil}, result{flaky: true, first: failed.tests, why: "failed at first: TestA, TestB"}, true,
		},
		"of which no test failed is flaky, too": {
			ci, "a", 10, []error{errors.New("exit status 1"), nil}, result{flaky: true, why: "failed at first: exit status 1"}, true,
		},
		"that fails twice has failed": {
			ci, "a", 10, []error{failed, errors.New("exit status 1")}, result{failed: true, why: "exit status 2; when it was run again: exit status 1"}, true,
		},
		"that is cut short the second time has failed": {
			ci, "a", 10, []error{failed, late}, result{failed: true, why: "exit status 2; when it was run again: did not end within 9m"}, true,
		},
		"that is interrupted the second time ends the run": {
			ci, "a", 10, []error{failed, interrupted}, result{failed: true, interrupted: true, why: "exit status 2; when it was run again: was interrupted"}, false,
		},
		"has failed if there is no time left": {
			ci, "a", 40, []error{failed}, result{failed: true, why: "exit status 2; not run again: would not fit: needs 25 minutes of 10 that are left; its inputs have not changed"}, false,
		},
		"is not run again if it was cut short": {
			ci, "a", 10, []error{late}, result{cut: true, why: "did not end within 9m"}, true,
		},
		"has failed if it was cut short after a test had failed": {
			ci, "a", 10, []error{&failure{error: late, tests: []string{"TestA"}}}, result{failed: true, why: "did not end within 9m"}, true,
		},
		"is not run again if its inputs have changed": {
			situation{ci: true, changed: map[string]bool{"a": true, "b": false}}, "a", 10, []error{failed}, result{failed: true, why: "exit status 2"}, true,
		},
		"is not run again if nobody knows what has changed": {
			situation{ci: true}, "a", 10, []error{failed}, result{failed: true, why: "exit status 2"}, true,
		},
		"is not run again if it is essential": {
			ci, "e2e", 10, []error{failed}, result{failed: true, why: "exit status 2"}, false,
		},
		"is run again where lanes are recorded": {
			situation{full: true, record: true, changed: unchanged()}, "a", 10, []error{failed, nil}, result{flaky: true, first: failed.tests, why: "failed at first: TestA, TestB"}, true,
		},
		"is not run again where somebody only runs it": {
			situation{names: []string{"a", "b"}, changed: unchanged()}, "a", 10, []error{failed}, result{failed: true, why: "exit status 2"}, true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			c.lanes, c.cannot = small, func(lane) string { return "" }
			var now time.Duration
			tries, others := 0, false
			results := c.plan().follow(func(l lane, a attempt) error {
				now += time.Duration(10 * float64(time.Minute))
				if l.name != c.lane {
					others = others || tries > 0
					return nil
				}
				now += time.Duration((c.minutes - 10) * float64(time.Minute))
				tries++
				if a.again != (tries > 1) {
					t.Errorf("try %d is told that it is the second: %t", tries, a.again)
				}
				return c.tries[tries-1]
			}, func() time.Duration { return now })
			got := results[c.lane]
			if tries != len(c.tries) || others != c.others || got.took != time.Duration(float64(tries)*c.minutes*float64(time.Minute)) {
				t.Errorf("tried %d times in %s, and others ran afterwards: %t", tries, got.took, others)
			}
			c.want.ran, c.want.took = true, got.took
			if diff := cmp.Diff(c.want, got, cmp.AllowUnexported(result{})); diff != "" {
				t.Error(diff)
			}
			if err := verdictOf(results); (err != nil) != c.want.failed {
				t.Errorf("the run ends with %v", err)
			}
		})
	}
}
