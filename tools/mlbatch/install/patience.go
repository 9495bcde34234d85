// SPDX-License-Identifier: Apache-2.0

package install

import (
	"fmt"
	"strings"
	"time"
)

// reminded is how long nothing is said of a wait that goes on.
const reminded = 30 * time.Second

// patience tells what is waited for: whatever is new at once, and from time to time
// what it still is.
type patience struct {
	progress    Progress
	began, last time.Time
	told        map[string]bool
}

func newPatience(progress Progress) *patience {
	now := time.Now()
	return &patience{progress: progress, began: now, last: now, told: map[string]bool{}}
}

func (p *patience) waitsFor(sentences ...string) {
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
