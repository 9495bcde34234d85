// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"strings"

	"github.com/mlbatch/mlbatch/test/auditlog"
)

// Count is the requests of a life, by client and by what is asked. Watches are not counted: they
// are opened once.
func Count(requests []auditlog.Request, lives int) map[string]map[string]float64 {
	counts := map[string]map[string]float64{}
	for _, r := range requests {
		if r.Verb == "watch" {
			continue
		}
		who := asker(r)
		if counts[who] == nil {
			counts[who] = map[string]float64{}
		}
		counts[who][r.What()]++
	}
	for _, of := range counts {
		for what := range of {
			of[what] /= float64(lives)
		}
	}
	return counts
}

// asker is who sent a request. Service accounts are called by their name alone.
func asker(r auditlog.Request) string {
	return r.User.Username[strings.LastIndexByte(r.User.Username, ':')+1:]
}
