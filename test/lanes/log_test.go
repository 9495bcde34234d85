// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"strings"
	"testing"
	"time"
)

func TestALogIsReadAndWrittenInTheOrderOfTheLanes(t *testing.T) {
	log, err := parseLog("lanes.log", "b                10.0 abcdef0 2026-01-02 flaky\nlint  3.1 0123456789ab 2026-01-01\ngone 1.0 0123456789ab 2026-01-01\n")
	if err != nil {
		t.Fatal(err)
	}
	log["a"] = record{took: 125 * time.Second, commit: "abcdef012345", date: "2026-02-01"}
	want := "lint              3.1 0123456789ab 2026-01-01\n" +
		"a                 2.1 abcdef012345 2026-02-01\n" +
		"b                10.0 abcdef0 2026-01-02 flaky\n"
	if got := formatLog(log, small); got != want {
		t.Errorf("the log is\n%s, not\n%s", got, want)
	}
}

func TestALogThatSaysSomethingElse(t *testing.T) {
	for what, line := range map[string]string{
		"no date": "lint 3.1 0123456789ab", "no minutes": "lint soon 0123456789ab 2026-01-01",
		"no commit": "lint 3.1 HEAD 2026-01-01", "one field more": "lint 3.1 0123456789ab 2026-01-01 yes", "two fields more": "lint 3.1 0123456789ab 2026-01-01 flaky flaky",
	} {
		if _, err := parseLog("lanes.log", "a 1.0 0123456789ab 2026-01-01\n"+line+"\n"); err == nil || !strings.HasPrefix(err.Error(), "lanes.log:2: ") {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func TestTheTableHasEveryLane(t *testing.T) {
	results := map[string]result{
		"lint": {ran: true, took: 90 * time.Second}, "e2e": {ran: true, failed: true, took: time.Hour, why: "exit status 2"},
		"a": {why: "would not fit"}, "b": {ran: true, cut: true, took: time.Minute, why: "did not end within 1m0s"}, "c": {failed: true, why: "needs root"}, "d": {ran: true, flaky: true, why: "failed at first: TestX"},
	}
	log := map[string]record{"lint": took(1, 1), "a": took(1, 2)}
	var out bytes.Buffer
	printResults(&out, small, results, log)
	want := `
lane  in this run  minutes  last recorded green      
lint  passed       1.5      0123456789ab 2026-01-01  
e2e   FAILED       60.0     never                    exit status 2
a     not run      -        0123456789ab 2026-01-02  would not fit
b     cut short    1.0      never                    did not end within 1m0s
c     FAILED       -        never                    needs root
d     flaky        0.0      never                    failed at first: TestX

d is flaky: it failed at first: TestX. Mend it before new work.

2 passed, 2 failed
`
	if out.String() != want {
		t.Errorf("it prints\n%s, not\n%s", out.String(), want)
	}
}

func TestTheListHasEveryLane(t *testing.T) {
	var out bytes.Buffer
	printLanes(&out, small, map[string]record{"lint": took(1, 1)})
	for _, want := range []string{"lint  make test              1.0      0123456789ab 2026-01-01\n", "e2e   make test       root   -        never\n", "d     make test-full         -        never\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in\n%s", want, out.String())
		}
	}
}
