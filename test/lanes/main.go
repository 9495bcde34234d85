// SPDX-License-Identifier: Apache-2.0

// Command lanes runs the tests in lanes: the essential lanes, all lanes with -full, or the
// named lanes. In continuous integration (CI=true), heavy lanes follow the essential ones until
// time runs out: first those whose inputs have changed since they were last recorded, then the
// others in turn. At the end it prints what ran and what did not. With -repeat it repeats one lane,
// to find out whether it is flaky.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"
)

func main() {
	full := flag.Bool("full", false, "run all lanes, and record those that pass")
	record := flag.Bool("record", false, "record the named lanes that pass, in "+logFile)
	list := flag.Bool("list", false, "list the lanes, and run none")
	times := flag.Int("repeat", 0, "repeat the named lane, or a command, so many times, and log each run in "+flakesFile)
	load := flag.Bool("load", false, "with -repeat: keep the processors busy meanwhile")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	s := session{ctx: ctx, repo: ".", begin: time.Now(), record: *full || *record}
	var err error
	switch {
	case *list:
		err = s.list()
	case *times > 0 && flag.NArg() != 1, *times < 0:
		err = errors.New("name one lane or command to repeat, and how often; -list lists the lanes")
	case *times > 0:
		err = s.repeat(flag.Arg(0), *times, *load)
	case *record && flag.NArg() == 0:
		err = errors.New("name the lanes to record; -list lists them")
	default:
		err = s.run(situation{lanes: lanes, ci: os.Getenv("CI") != "", full: *full, names: flag.Args(), record: s.record, cannot: cannot}, *record)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "lanes:", err)
		os.Exit(1)
	}
}

// session is one run of this program.
type session struct {
	ctx    context.Context
	repo   repo
	begin  time.Time
	record bool
}

func (s session) list() error {
	log, err := s.repo.readLog()
	if err == nil {
		printLanes(os.Stdout, lanes, log)
	}
	return err
}

// run makes a plan and executes it. With mustRecord, it refuses to run if it could not record
// results.
func (s session) run(now situation, mustRecord bool) error {
	for _, name := range now.names {
		if !slices.ContainsFunc(lanes, func(l lane) bool { return l.name == name }) {
			return fmt.Errorf("there is no lane %q; -list lists them", name)
		}
	}
	if mustRecord {
		if err := s.repo.clean(); err != nil {
			return err
		}
	}
	if err := s.lookUp(&now); err != nil {
		return err
	}
	results := now.plan().follow(s.lane, s.elapsed)
	var err error
	if now.log, err = s.repo.readLog(); err != nil {
		return err
	}
	printResults(os.Stdout, now.lanes, results, now.log)
	return verdictOf(results)
}

// lookUp reads what the plan needs to know of the repository.
func (s session) lookUp(now *situation) (err error) {
	if now.log, err = s.repo.readLog(); err != nil {
		return err
	}
	if now.commit, err = s.repo.head(); err != nil && s.record {
		return err
	}
	if now.rotates() || now.record {
		if now.changed, err = s.repo.changed(now.lanes, now.log); err != nil {
			fmt.Fprintln(os.Stderr, "lanes: the inputs of every lane count as changed:", err)
		}
	}
	return nil
}

func verdictOf(results map[string]result) error {
	for _, r := range results {
		if r.failed {
			return errors.New("not all lanes passed")
		}
	}
	return nil
}

func (s session) elapsed() time.Duration { return time.Since(s.begin) }

// lane runs a lane, and records that it passed.
func (s session) lane(l lane, a attempt) error {
	fmt.Printf("== %s\n", l.name)
	begin := time.Now()
	before := s.state()
	failed := &failures{out: os.Stdout, deadline: begin.Add(a.limit)}
	err := execute(s.ctx, l.command(), a.limit, failed, os.Stderr)
	failed.end()
	took := time.Since(begin)
	if err != nil {
		fmt.Printf("== %s: ended after %.0f s: %v\n", l.name, took.Seconds(), err)
		fmt.Print(failed)
		return &failure{err, failed.tests, failed.String()}
	}
	fmt.Printf("== %s: %.0f s\n", l.name, took.Seconds())
	if !s.record {
		return nil
	}
	if after := s.state(); before == "" || before != after {
		fmt.Printf("== %s is not recorded: there are changes that are not committed\n", l.name)
		return nil
	}
	return s.repo.record(lanes, l.name, record{took: took, commit: before, date: time.Now().UTC().Format(time.DateOnly), flaky: a.again})
}

// state returns the commit under test, or "" if the checkout has uncommitted changes.
func (s session) state() string {
	head, err := s.repo.head()
	if errors.Join(err, s.repo.clean()) != nil {
		return ""
	}
	return head
}

// cannot returns why a lane cannot run on this machine.
func cannot(l lane) string {
	if !l.root || os.Geteuid() == 0 || l.unless != "" && os.Getenv(l.unless) != "" {
		return ""
	}
	return "needs root: run it as root"
}
