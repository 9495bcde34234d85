// SPDX-License-Identifier: Apache-2.0

package wait

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestALongWaitSaysNowAndThenWhatItIsFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var said strings.Builder
		p := newReporter(&said)
		for second := range 100 {
			switch {
			case second < 40:
				p.waitsFor("no pods", "no kind")
			case second < 90:
				p.waitsFor("no kind")
			default:
				p.waitsFor("one pod", "no kind")
			}
			time.Sleep(time.Second)
		}
		p.waitsFor()
		want := "  no pods\n  no kind\n" +
			"  after 30s still: no pods; no kind\n" +
			"  after 1m0s still: no kind\n" +
			"  one pod\n"
		if diff := cmp.Diff(want, said.String()); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
	})
}
