// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"io"
	"regexp"
	"strings"
	"time"
)

// Each test that failed is repeated with so many of its messages, each of so many lines and so many characters in each.
const (
	messagesOfATest  = 5
	linesOfMessages  = 4
	lengthOfMessages = 400
	// lastLines are shown if no test has failed, but something else.
	lastLines = 5
	// readable is how many lines after the last message a reader still sees it.
	readable = 10
)

var message = regexp.MustCompile(`^\s+\w+_test\.go:\d+: `)

// failures collects what 'go test' writes about tests that fail, and passes it on. In the output of a lane, a
// thousand lines of logs may follow a message: then it is repeated before the line that says that its test has failed.
type failures struct {
	out   io.Writer // nil if nobody reads along
	rest  []byte
	found []string
	tests []string // the names of those that failed before the deadline
	// deadline is when the lane is ended. Tests that fail because of that do not count.
	deadline time.Time
	before   []string // messages of a test that has not ended
	since    int      // lines after the last of them
	failing  int      // how many more messages of the failed test are wanted
	more     int      // how many more lines of the last message are wanted
	last     []string // lines
}

func (f *failures) Write(p []byte) (int, error) {
	f.rest = append(f.rest, p...)
	for {
		line, rest, whole := bytes.Cut(f.rest, []byte("\n"))
		if !whole {
			return len(p), nil
		}
		if strings.HasPrefix(string(line), failed) && len(f.before) > 0 && f.since > readable {
			f.pass("    once more, what failed:\n" + strings.Join(f.before, "\n"))
		}
		f.pass(string(line))
		f.read(string(line))
		f.rest = rest
	}
}

// end passes on what is no whole line.
func (f *failures) end() {
	if len(f.rest) > 0 {
		f.pass(string(f.rest))
	}
}

func (f *failures) pass(line string) {
	if f.out != nil {
		fmt.Fprintln(f.out, line)
	}
}

// failed is how the line begins that says that a test has failed, and is none of a subtest.
const failed = "--- FAIL: "

// read knows both orders: with -v the messages of a test come before its result, else after it.
func (f *failures) read(line string) {
	short := line[:min(len(line), lengthOfMessages)]
	f.since++
	f.last = append(f.last, short)
	f.last = f.last[max(0, len(f.last)-lastLines):]
	switch {
	case message.MatchString(line):
		f.say(short)
	case f.more > 0 && strings.HasPrefix(line, "        "):
		f.goOn(short)
	case strings.HasPrefix(line, failed):
		if name, _, _ := strings.Cut(strings.TrimPrefix(line, failed), " "); time.Now().Before(f.deadline) {
			f.tests = append(f.tests, name)
		}
		f.found = append(append(f.found, line), f.before...)
		f.failing = messagesOfATest - len(f.before)
		f.forget()
	case begins(line):
		f.failing = 0
		f.forget()
	default:
		f.more = 0
	}
}

func (f *failures) say(line string) {
	f.since, f.more = 0, linesOfMessages-1
	switch {
	case f.failing > 0:
		f.found = append(f.found, line)
		f.failing--
	default: // the last ones say most
		f.before = append(f.before, line)
		f.before = f.before[max(0, len(f.before)-messagesOfATest):]
	}
}

// goOn adds a line to the last message.
func (f *failures) goOn(line string) {
	to := f.found
	if len(f.before) > 0 {
		to = f.before
	}
	to[len(to)-1] += "\n" + line
	f.since--
	f.more--
}

func (f *failures) forget() { f.before, f.since, f.more = nil, 0, 0 }

// begins says whether the messages after a line are of another test.
func begins(line string) bool {
	name, isRun := strings.CutPrefix(line, "=== RUN   ")
	return isRun && !strings.Contains(name, "/") || strings.HasPrefix(line, "--- ") || strings.HasPrefix(line, "ok  ") || strings.HasPrefix(line, "FAIL\t")
}

// String has a line for each test that failed and each of its messages. If there is none, it has the last lines.
func (f *failures) String() string {
	var all strings.Builder
	lines := f.found
	if len(lines) == 0 {
		lines = f.last
	}
	for _, line := range lines {
		all.WriteString(line + "\n")
	}
	return all.String()
}
