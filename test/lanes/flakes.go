// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// flakesFile grows by a line per run, over days: it shows what is flaky, and what no longer is.
const flakesFile = "docs/evidence/flakes.log"

// trial is one of several runs of the same lane.
type trial struct {
	date, commit, lane string
	loaded             bool
	err                error
	took               time.Duration
	failed             failures
}

// String is a line of the log, with tabs.
func (r trial) String() string {
	load, verdict := "alone", "passed"
	if r.loaded {
		load = "loaded"
	}
	if r.err != nil {
		verdict = "failed"
	}
	why := strings.Join(r.failed.tests, " ")
	if why == "" && r.err != nil {
		why = text(r.err)
	}
	return strings.TrimRight(strings.Join([]string{r.date, r.commit, r.lane, load, verdict, fmt.Sprintf("%.1f", r.took.Minutes()), why}, "\t"), "\t")
}

// repeat runs a lane several times. What it finds is in the log, and printed at the end.
func (s session) repeat(name string, times int, loaded bool) error {
	l, err := laneOrCommand(name)
	if err != nil {
		return err
	}
	if why := cannot(l); why != "" {
		return fmt.Errorf("lane %s %s", name, why)
	}
	// Go would repeat what its cache says.
	if err := os.Setenv("GOFLAGS", strings.TrimSpace(os.Getenv("GOFLAGS")+" -count=1")); err != nil {
		return err
	}
	var bad []string
	for i := range times {
		fmt.Printf("== %s, run %d of %d\n", name, i+1, times)
		t := s.trial(l, loaded)
		if errors.Is(t.err, errInterrupted) {
			return t.err
		}
		if err := s.repo.appendFlakes(t); err != nil {
			return err
		}
		if t.err != nil {
			bad = append(bad, fmt.Sprintf("run %d: %v\n%s", i+1, t.err, t.failed.String()))
		}
	}
	return s.conclude(name, times, bad)
}

func laneOrCommand(name string) (lane, error) {
	i := slices.IndexFunc(lanes, func(l lane) bool { return l.name == name })
	switch {
	case i >= 0:
		return lanes[i], nil
	case strings.ContainsRune(name, ' '):
		return lane{name: name, shell: name}, nil
	}
	return lane{}, fmt.Errorf("there is no lane %q: name one of -list, or a command like 'go test ./test/lanes -run TestOrder'", name)
}

// trial runs the lane once, beside busy processes if so desired.
func (s session) trial(l lane, loaded bool) trial {
	begin := time.Now()
	t := trial{date: begin.UTC().Format("2006-01-02T15:04Z"), commit: s.repo.version(), lane: l.name, loaded: loaded}
	t.failed.out, t.failed.deadline = os.Stdout, begin.Add(laneLimit)
	end := func() {}
	if loaded {
		end, t.err = burn(s.ctx, laneLimit)
	}
	if t.err == nil {
		t.err = execute(s.ctx, l.command(), laneLimit, &t.failed, os.Stderr)
	}
	t.failed.end()
	end()
	t.took = time.Since(begin)
	fmt.Printf("== %s\n", t)
	return t
}

// version is the commit, with a mark if the checkout differs.
func (r repo) version() string {
	head, err := r.head()
	if errors.Join(err, r.clean()) != nil {
		return head + "-dirty"
	}
	return head
}

func (r repo) appendFlakes(t trial) error {
	f, err := os.OpenFile(filepath.Join(string(r), flakesFile), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(f, t)
	return errors.Join(err, f.Close())
}

func (s session) conclude(name string, times int, bad []string) error {
	for _, one := range bad {
		fmt.Printf("\n%s", one)
	}
	content, err := os.ReadFile(filepath.Join(string(s.repo), flakesFile))
	if err != nil {
		return err
	}
	green, loaded := streak(string(content), name)
	fmt.Printf("\n%s: %d of %d runs passed; the last %d in %s did, %d of them under load\n", name, times-len(bad), times, green, flakesFile, loaded)
	if len(bad) > 0 {
		return fmt.Errorf("%s failed %d times of %d", name, len(bad), times)
	}
	return nil
}

// streak counts the last runs of a lane that passed without one that failed between them, and those under load.
func streak(log, name string) (green, loaded int) {
	for line := range strings.Lines(log) {
		field := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if len(field) < 6 || field[2] != name {
			continue
		}
		if field[4] != "passed" {
			green, loaded = 0, 0
			continue
		}
		green++
		if field[3] == "loaded" {
			loaded++
		}
	}
	return green, loaded
}
