// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestFailuresAreRepeated(t *testing.T) {
	const loud = `=== RUN   TestGood
    good_test.go:3: all is well
--- PASS: TestGood (0.00s)
=== RUN   TestBad
=== RUN   TestBad/story
    bad_test.go:7: there are 2 pods
    explain.go:51: event Created
--- FAIL: TestBad (33.51s)
    --- FAIL: TestBad/story (33.51s)
=== RUN   TestChatty
    chatty_test.go:1: one
    chatty_test.go:1: two
    chatty_test.go:1: three
    chatty_test.go:1: four
    chatty_test.go:1: five
    chatty_test.go:1: six
--- FAIL: TestChatty (0.00s)
=== RUN   TestLast
    last_test.go:9: fine
--- PASS: TestLast (0.00s)
`
	const quiet = `ok  	example.com/a	0.1s
--- FAIL: TestBad (0.06s)
    bad_test.go:30: too long
    bad_test.go:31: too short
FAIL
FAIL	example.com/b	0.9s
`
	for output, want := range map[string]string{
		loud: "--- FAIL: TestBad (33.51s)\n    bad_test.go:7: there are 2 pods\n--- FAIL: TestChatty (0.00s)\n" +
			"    chatty_test.go:1: two\n    chatty_test.go:1: three\n    chatty_test.go:1: four\n    chatty_test.go:1: five\n    chatty_test.go:1: six\n",
		quiet: "--- FAIL: TestBad (0.06s)\n    bad_test.go:30: too long\n    bad_test.go:31: too short\n",
		"--- FAIL: TestBad (0s)\n" + strings.Repeat("    bad_test.go:1: "+strings.Repeat("x", 1000)+"\n", 9): "--- FAIL: TestBad (0s)\n" +
			strings.Repeat(("    bad_test.go:1: " + strings.Repeat("x", 1000))[:400]+"\n", 5),
		"=== RUN   TestBad\n    bad_test.go:1: it was\n        one\n        two\n        three\n        four\n    explain.go:1: a pod\n        its phase\n--- FAIL: TestBad (0s)\n": "--- FAIL: TestBad (0s)\n" +
			"    bad_test.go:1: it was\n        one\n        two\n        three\n",
		"--- FAIL: TestBad (0s)\n    bad_test.go:1: it was\n        one\n    bad_test.go:2: and is\n        two\n": "--- FAIL: TestBad (0s)\n" +
			"    bad_test.go:1: it was\n        one\n    bad_test.go:2: and is\n        two\n",
		"--- PASS: TestGood (0s)\na\nb\nc\ne2e: the cluster left something behind\nFAIL\n": "a\nb\nc\ne2e: the cluster left something behind\nFAIL\n",
	} {
		var out strings.Builder
		f := &failures{out: &out}
		for i := range output { // lines come in pieces
			fmt.Fprint(f, output[i:i+1])
		}
		if got := f.String(); got != want {
			t.Errorf("got\n%swant\n%s", got, want)
		}
		if out.String() != output {
			t.Errorf("it passes on\n%s", out.String())
		}
	}
}

// Who reads only what is printed before the result still sees what failed, however much explains it.
func TestWhatFailedIsRepeatedAfterItsExplanation(t *testing.T) {
	const begin, end = "=== RUN   TestBad\n    bad_test.go:7: there are 2 pods\n", "--- FAIL: TestBad (33.51s)\nFAIL"
	for lines, want := range map[int]string{readable: "", readable + 1: "    once more, what failed:\n    bad_test.go:7: there are 2 pods\n"} {
		explanation := strings.Repeat("    explain.go:51: event Created\n", lines)
		var out strings.Builder
		f := &failures{out: &out}
		fmt.Fprint(f, begin+explanation+end)
		f.end()
		if want := begin + explanation + want + end + "\n"; out.String() != want {
			t.Errorf("got\n%swant\n%s", out.String(), want)
		}
	}
}

func TestWhatFailedIsAtTheEnd(t *testing.T) {
	said := "--- FAIL: TestBad (0s)\n" + strings.Repeat("    bad_test.go:7: there are 2 pods\n", linesAtTheEnd)
	run := func(lane, attempt) error { return &failure{errors.New("exit status 2"), []string{"TestBad"}, said} }
	now := situation{lanes: []lane{{name: "a"}, {name: "b"}}, names: []string{"a"}, cannot: func(lane) string { return "" }}
	results := now.plan().follow(run, func() time.Duration { return 0 })
	var out strings.Builder
	printResults(&out, now.lanes, results, nil)
	want := "\nIn a failed:\n" + strings.TrimSuffix(said, "    bad_test.go:7: there are 2 pods\n") + "(1 lines more above)\n\n0 passed, 1 failed\n"
	if !strings.HasSuffix(out.String(), want) {
		t.Errorf("got\n%swant at the end\n%s", out.String(), want)
	}
}

// A lane that is ended lets its tests fail: they say nothing.
func TestTestsThatFailBeforeTheDeadlineAreNamed(t *testing.T) {
	const output = "--- FAIL: TestBad (1.00s)\n    --- FAIL: TestBad/story (1.00s)\n--- FAIL: TestWorse (0.00s)\n--- FAIL: \n"
	for deadline, want := range map[time.Duration]string{time.Hour: "TestBad TestWorse ", -time.Second: ""} {
		f := &failures{deadline: time.Now().Add(deadline)}
		fmt.Fprint(f, output)
		if got := strings.Join(f.tests, " "); got != want {
			t.Errorf("failed before a deadline in %s: %q, not %q", deadline, got, want)
		}
	}
}
