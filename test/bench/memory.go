// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"fmt"
	"strings"
)

// What the controller of Runs may take at most: so much without Runs, and so much for each.
const (
	mibOfRuns = 40
	kibOfARun = 6
)

// MemoryOfRuns says, for each scenario of Runs, what their controller took at most, and what it may.
func (r Report) MemoryOfRuns(scenarios []Scenario) string {
	var says strings.Builder
	for _, s := range r.measured(scenarios) {
		if !s.Runs {
			continue
		}
		took := spreadOf(r.of(s.Name), func(r Result) float64 { return r.Memory[OfRuns] })
		most := mibOfRuns + float64(s.Number)*kibOfARun/1024
		fmt.Fprintf(&says, "%s: their controller took %s MiB at most.\nIt may take %s MiB: %d MiB, and %d KiB for each Run.\n",
			s.Says, took, number(most), mibOfRuns, kibOfARun)
	}
	return says.String()
}
