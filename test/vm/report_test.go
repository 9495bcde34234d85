// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestReportsArePrintedUntilTheLastOrAProblem(t *testing.T) {
	const up = `{"step":"cluster up","found":"1 of 1 ready","seconds":40}` + "\r\n" // as from a serial port
	for name, c := range map[string]struct {
		reports, printed, problem string
	}{
		"all steps are done": {
			reports: up + `{"step":"cluster down","seconds":2,"last":true}` + "\n",
			printed: "   50 s     40 s  cluster up: 1 of 1 ready\n   50 s      2 s  cluster down\n",
		},
		"a step fails": {
			reports: up + `{"step":"cluster down","problem":"exit status 1","seconds":2}` + "\n",
			printed: "   50 s     40 s  cluster up: 1 of 1 ready\n",
			problem: "cluster down: exit status 1",
		},
		"the machine ends early": {
			reports: up,
			printed: "   50 s     40 s  cluster up: 1 of 1 ready\n",
			problem: "the virtual machine ended before its last step",
		},
		"others write to the port": {
			reports: "SeaBIOS\n" + `{"step":"cluster down","seconds":2,"last":true}` + "\n",
			printed: "   50 s      2 s  cluster down\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			var clock time.Time
			now := func() time.Time { clock = clock.Add(50 * time.Second); return clock }
			var printed strings.Builder
			problem := ""
			if err := follow(strings.NewReader(c.reports), &printed, now); err != nil {
				problem = err.Error()
			}
			if diff := cmp.Diff(c.printed, printed.String()); diff != "" {
				t.Error(diff)
			}
			if problem != c.problem {
				t.Errorf("problem %q, want %q", problem, c.problem)
			}
		})
	}
}
