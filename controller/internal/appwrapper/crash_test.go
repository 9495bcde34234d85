// SPDX-License-Identifier: Apache-2.0

package appwrapper

import (
	"flag"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/mlbatch/mlbatch/test/stories"
	"github.com/mlbatch/mlbatch/test/troubles"
)

var (
	everyAnswer = flag.Bool("crash.every-answer", false, "let every call fail with every error, not with one of them")
	seeds       = flag.Int("crash.seeds", 5, "how many lives of each story have several troubles at random")
	firstSeed   = flag.Uint64("crash.first-seed", 1, "the seed of the first of these lives; the others follow")
)

// TestCrash runs every story without trouble first. Then it repeats the story once for each
// call of the controller and each way in which that call can fail, once with each cache stale
// until everything else has settled, and then with several random troubles. The promises that
// life checks must always hold. After every step, the story must reach the same place as
// without trouble.
func TestCrash(t *testing.T) {
	var calls, lives atomic.Int64
	all := stories.All()
	t.Cleanup(func() {
		t.Logf("crash test: %d stories, %d calls, %d lives, seeds %d to %d of each story",
			len(all), calls.Load(), lives.Load(), *firstSeed, *firstSeed+uint64(*seeds)-1)
	})
	for _, story := range all {
		t.Run(story.Name, func(t *testing.T) {
			t.Parallel()
			calm := live(t, story, troubles.Reliable(nil), nil)
			calls.Add(int64(len(calm.wire.Calls)))
			lives.Add(1)
			relive := func(name string, w *troubles.Wire) {
				lives.Add(1)
				t.Run(name, func(t *testing.T) { live(t, story, w, calm) })
			}
			for n, c := range calm.wire.Calls {
				for _, tr := range troubles.Of(c, n, *everyAnswer) {
					relive(fmt.Sprintf("call_%d_%s", n+1, tr), troubles.Reliable(map[int]troubles.Trouble{n + 1: tr}))
				}
			}
			for _, late := range caches {
				relive("late_"+late, &troubles.Wire{Lags: func(cached string) bool { return cached == late }})
			}
			for i := range *seeds {
				seed := *firstSeed + uint64(i)
				relive(fmt.Sprintf("seed_%d", seed), troubles.AtRandom(seed, len(calm.wire.Calls)))
			}
		})
	}
}

// replay returns the command that runs one test again.
func replay(test string) string {
	parts := strings.Split(test, "/")
	for i, part := range parts {
		parts[i] = "^" + part + "$"
	}
	command := fmt.Sprintf("go test ./controller/internal/appwrapper -run '%s'", strings.Join(parts, "/"))
	if *everyAnswer {
		command += " -crash.every-answer"
	}
	if seed, random := strings.CutPrefix(test[strings.LastIndex(test, "/")+1:], "seed_"); random {
		command += " -crash.seeds=1 -crash.first-seed=" + seed
	}
	return command
}
