// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"strings"
	"testing"
)

func TestABadScenarioIsRefused(t *testing.T) {
	for text, want := range map[string]string{
		"number: 1":                           "says is missing",
		"says: x":                             "number and pods must be positive",
		"{says: x, number: 1, pods: -1}":      "number and pods must be positive",
		"{says: x, number: 1, perSecond: -1}": "perSecond must not be negative",
		"{says: x, number: 1, suspended: true, queued: true}": "suspended lives are in no queue",
		"{says: x, number: 1, suspended: true, runs: true}":   "suspended lives are in no queue",
		"{says: x, number: 1, failing: true, pods: 2}":        "those that fail are AppWrappers of one pod",
		"{says: x, number: 1, failing: true, bare: true}":     "those that fail are AppWrappers of one pod",
		"{says: x, number: 1, failing: true, runs: true}":     "those that fail are AppWrappers of one pod",
		"{says: x, number: 1, runs: true, pods: 2}":           "runs are of one pod",
		"{says: x, number: 1, runs: true, perSecond: 2}":      "runs are of one pod",
		"{says: x, number: 1, runs: true, queued: true}":      "runs are of one pod",
		"{says: x, number: 1, runs: true, bare: true}":        "runs are of one pod",
		"{says: x, number: 1, rate: 1}":                       `unknown field "rate"`,
	} {
		if _, err := parse([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", text, err, want)
		}
	}
}

// Otherwise its bars would be in two series of a picture, or in none.
func TestEachScenarioIsOfOneKind(t *testing.T) {
	all, err := Scenarios()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range all {
		var of []string
		for _, kind := range kinds {
			if kind.is(s) {
				of = append(of, kind.name)
			}
		}
		if len(of) != 1 {
			t.Errorf("%s is of the kinds %q", s.Name, of)
		}
	}
}
