// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"regexp"
	"strings"
	"time"
)

// Each test that failed is repeated with so many of its messages, each of so many characters.
const (
	messagesOfATest  = 5
	lengthOfMessages = 400
)

var message = regexp.MustCompile(`^\s+\w+_test\.go:\d+: `)

// failures collects what 'go test' writes about tests that fail. In the output of a lane, a
// thousand lines of logs may follow.
type failures struct {
	rest  []byte
	found []string
	tests []string // the names of those that failed before the deadline
	// deadline is when the lane is ended. Tests that fail because of that do not count.
	deadline time.Time
	before   []string // messages of a test that has not ended
	failing  int      // how many more messages of the failed test are wanted
}

func (f *failures) Write(p []byte) (int, error) {
	f.rest = append(f.rest, p...)
	for {
		line, rest, whole := bytes.Cut(f.rest, []byte("\n"))
		if !whole {
			return len(p), nil
		}
		f.read(string(line))
		f.rest = rest
	}
}

// read knows both orders: with -v the messages of a test come before its result, else after it.
func (f *failures) read(line string) {
	switch {
	case message.MatchString(line):
		f.say(line[:min(len(line), lengthOfMessages)])
	case strings.HasPrefix(line, "--- FAIL: "):
		if name, _, _ := strings.Cut(strings.TrimPrefix(line, "--- FAIL: "), " "); time.Now().Before(f.deadline) {
			f.tests = append(f.tests, name)
		}
		f.found = append(append(f.found, line), f.before...)
		f.failing = messagesOfATest - len(f.before)
		f.before = nil
	case begins(line):
		f.failing, f.before = 0, nil
	}
}

func (f *failures) say(line string) {
	switch {
	case f.failing > 0:
		f.found = append(f.found, line)
		f.failing--
	default: // the last ones say most
		f.before = append(f.before, line)
		f.before = f.before[max(0, len(f.before)-messagesOfATest):]
	}
}

// begins says whether the messages after a line are of another test.
func begins(line string) bool {
	name, isRun := strings.CutPrefix(line, "=== RUN   ")
	return isRun && !strings.Contains(name, "/") || strings.HasPrefix(line, "--- ") || strings.HasPrefix(line, "ok  ") || strings.HasPrefix(line, "FAIL\t")
}

// String has a line for each test that failed and each of its messages.
func (f *failures) String() string {
	var all strings.Builder
	for _, line := range f.found {
		all.WriteString(line + "\n")
	}
	return all.String()
}
