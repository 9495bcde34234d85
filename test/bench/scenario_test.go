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
