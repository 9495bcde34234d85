// SPDX-License-Identifier: Apache-2.0

package run

import (
	"testing"

	"github.com/mlbatch/mlbatch/controller/internal/echoes"
	"github.com/mlbatch/mlbatch/test/troubles"
)

// What would be saved or created would be refused.
func TestARunIsNotLookedAtBeforeTheCacheHasOurOwnWrites(t *testing.T) {
	for late, story := range map[string][]func(*life){
		"Run":        join([]func(*life){applies}, starts),
		"AppWrapper": {applies},
	} {
		t.Run(late, func(t *testing.T) {
			l := newLife(t, troubles.Reliable(nil), nil)
			l.tell(nil)
			for _, step := range story {
				step(l)
				l.process.catchUp(troubles.Never)
				l.process.reconcile()
				l.process.catchUp(func(kind string) bool { return kind == late })
				l.wire.Calls = nil
				l.process.reconcile()
				if len(l.wire.Calls) > 0 || l.process.at != l.now.Add(echoes.Longest) {
					t.Errorf("it looks again at %s, and calls: %s", l.process.at, l.wire)
				}
				l.react()
			}
		})
	}
}
