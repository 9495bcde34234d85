// SPDX-License-Identifier: Apache-2.0

// Package kubelet is nodes without containers. What the containers of a pod do over time is in an annotation of the
// pod; restarts, phases and conditions are those of a real kubelet.
package kubelet

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// PlayAnnotation says what the containers of a pod do: clauses that are separated by semicolons, of which each has
// settings, and before them the conditions under which they hold. Later clauses override earlier ones.
//
//	run=5s exit=0; index=1 run=2s exit=42; first=1 exit=1
//
// Conditions: index=N, of the pod in its set; first=K, for the first K starts in its slot, over all its pods.
// Settings: start=TIME until containers run; ready=TIME until they are ready, or never; run=TIME until they exit,
// forever if left out; exit=CODE; stop=TIME from a signal to the exit; term=CODE, with which they then exit.
const PlayAnnotation = "same.mlbatch.dev/play"

// never is later than every test.
const never = time.Duration(1<<63 - 1)

// play is what containers do after one start.
type play struct {
	start, ready, run, stop time.Duration
	exit, term              int32
}

// parsePlay reads an annotation for a start: the number of the pod in its set, and how often its slot has been started,
// with this time.
func parsePlay(text string, number, starts int) (play, error) {
	p := play{run: never, term: 143}
	for clause := range strings.SplitSeq(text, ";") {
		if err := p.apply(strings.Fields(clause), number, starts); err != nil {
			return p, fmt.Errorf("%s: %w", text, err)
		}
	}
	return p, nil
}

// apply reads the settings of a clause if its conditions hold.
func (p *play) apply(words []string, number, starts int) error {
	for _, word := range words {
		key, value, _ := strings.Cut(word, "=")
		holds, err := condition(key, value, number, starts)
		if err == nil && holds {
			err = p.set(key, value)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", word, err)
		}
		if !holds {
			return nil
		}
	}
	return nil
}

// condition reports whether a word is no condition, or one that holds.
func condition(key, value string, number, starts int) (bool, error) {
	if key != "index" && key != "first" {
		return true, nil
	}
	n, err := strconv.Atoi(value)
	if key == "index" {
		return n == number, err
	}
	return starts <= n, err
}

func (p *play) set(key, value string) (err error) {
	switch key {
	case "index", "first":
	case "exit":
		p.exit, err = code(value)
	case "term":
		p.term, err = code(value)
	default:
		err = p.setTime(key, value)
	}
	return err
}

func code(text string) (int32, error) {
	n, err := strconv.ParseInt(text, 10, 32)
	return int32(n), err
}

func (p *play) setTime(key, value string) (err error) {
	times := map[string]*time.Duration{"start": &p.start, "ready": &p.ready, "run": &p.run, "stop": &p.stop}
	into, known := times[key]
	if !known {
		return fmt.Errorf("there is no setting %q", key)
	}
	if *into = never; value != "never" {
		*into, err = time.ParseDuration(value)
	}
	return err
}
