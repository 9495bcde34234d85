// SPDX-License-Identifier: Apache-2.0

package wait

import (
	"fmt"
	"strings"
	"time"

	"github.com/mlbatch/mlbatch/tools/mlbatch/install/helmrelease"
)

// reminded is the interval at which a wait is reported again.
const reminded = 30 * time.Second

// reporter prints why a command waits: new reasons at once, and all current ones at the interval reminded.
type reporter struct {
	progress    helmrelease.Progress
	began, last time.Time
	told        map[string]bool
}

func newReporter(progress helmrelease.Progress) *reporter {
	now := time.Now()
	return &reporter{progress: progress, began: now, last: now, told: map[string]bool{}}
}

func (p *reporter) waitsFor(sentences ...string) {
	for _, sentence := range sentences {
		if !p.told[sentence] {
			fmt.Fprintln(p.progress, "  "+sentence)
			p.told[sentence], p.last = true, time.Now()
		}
	}
	if len(sentences) > 0 && time.Since(p.last) >= reminded {
		fmt.Fprintf(p.progress, "  after %s still: %s\n", time.Since(p.began).Round(time.Second), strings.Join(sentences, "; "))
		p.last = time.Now()
	}
}
