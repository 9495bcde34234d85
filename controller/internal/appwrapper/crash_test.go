// SPDX-License-Identifier: Apache-2.0

package appwrapper

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/mlbatch/mlbatch/test/stories"
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
			calm := live(t, story, reliable(nil), nil)
			calls.Add(int64(len(calm.wire.calls)))
			lives.Add(1)
			relive := func(name string, w *wire) {
				lives.Add(1)
				t.Run(name, func(t *testing.T) { live(t, story, w, calm) })
			}
			for n, c := range calm.wire.calls {
				for _, tr := range troublesOf(c, n) {
					relive(fmt.Sprintf("call_%d_%s", n+1, tr), reliable(map[int]trouble{n + 1: tr}))
				}
			}
			for _, late := range caches {
				relive("late_"+late, &wire{lags: func(cached string) bool { return cached == late }})
			}
			for i := range *seeds {
				seed := *firstSeed + uint64(i)
				relive(fmt.Sprintf("seed_%d", seed), unreliableWire(seed, len(calm.wire.calls)))
			}
		})
	}
}

// troublesOf returns the troubles that the call can have. Without -crash.every-answer, the
// number of the call selects the error.
func troublesOf(c call, n int) []trouble {
	var all []trouble
	for _, m := range c.manners {
		possible := answers
		if m != fails && m != lost {
			possible = []answer{{}}
		} else if !*everyAnswer {
			possible = answers[n%len(answers) : n%len(answers)+1]
		}
		for _, a := range possible {
			all = append(all, trouble{m, a})
		}
	}
	return all
}

// reliable is a wire with only these troubles.
func reliable(troubles map[int]trouble) *wire {
	return &wire{troubles: troubles, lags: never}
}

// unreliableWire has two to four troubles, and in every third case stale caches.
func unreliableWire(seed uint64, calls int) *wire {
	random := rand.New(rand.NewPCG(seed, 0))
	w := &wire{troubles: map[int]trouble{}, lags: func(string) bool { return random.IntN(3) == 0 }}
	for range 2 + random.IntN(3) {
		w.troubles[1+random.IntN(calls)] = trouble{passing[random.IntN(len(passing))], answers[random.IntN(len(answers))]}
	}
	return w
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
