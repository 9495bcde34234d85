// SPDX-License-Identifier: Apache-2.0

package main

import (
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
	} {
		f := &failures{}
		for i := range output { // lines come in pieces
			fmt.Fprint(f, output[i:i+1])
		}
		if got := f.String(); got != want {
			t.Errorf("got\n%swant\n%s", got, want)
		}
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
