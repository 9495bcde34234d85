// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// record is when a lane last passed, on which commit, and how long it took.
type record struct {
	took         time.Duration
	commit, date string
	flaky        bool // it failed at first
}

func (r record) String() string {
	if r.flaky {
		return r.commit + " " + r.date + " flaky"
	}
	return r.commit + " " + r.date
}

// entry is a line of the log: lane, minutes, commit, date, and perhaps that it is flaky.
var entry = regexp.MustCompile(`^([a-z0-9-]+) +([0-9]+\.[0-9]) +([0-9a-f]{7,40}) +([0-9]{4}-[0-9]{2}-[0-9]{2})( flaky)?$`)

// parseLog parses a log; name is for the error message.
func parseLog(name, content string) (map[string]record, error) {
	log := map[string]record{}
	for i, line := range strings.Split(strings.TrimSuffix(content, "\n"), "\n") {
		if line == "" {
			continue
		}
		field := entry.FindStringSubmatch(line)
		if field == nil {
			return nil, fmt.Errorf("%s:%d: %q is not a lane, its minutes (like 3.1), a commit and a date (like 2026-01-31), and perhaps flaky", name, i+1, line)
		}
		minutes, err := strconv.ParseFloat(field[2], 64)
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", name, i+1, err)
		}
		log[field[1]] = record{took: time.Duration(minutes * float64(time.Minute)), commit: field[3], date: field[4], flaky: field[5] != ""}
	}
	return log, nil
}

// formatLog formats a log in the order of the lanes. It omits lanes that no longer exist.
func formatLog(log map[string]record, lanes []lane) string {
	var out strings.Builder
	for _, l := range lanes {
		if r, ok := log[l.name]; ok {
			fmt.Fprintf(&out, "%-15s %5.1f %s\n", l.name, r.took.Minutes(), r)
		}
	}
	return out.String()
}
