// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package siege_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mlbatch/mlbatch/test/patience"
	"github.com/mlbatch/mlbatch/test/quotawatch"
	"github.com/mlbatch/mlbatch/test/siege/grammar"
	"github.com/mlbatch/mlbatch/test/siege/referee"
	"github.com/mlbatch/mlbatch/tools/mlbatch/answers/audit"
	"github.com/mlbatch/mlbatch/tools/mlbatch/snapshot"
)

var (
	seed    = flag.Uint64("siege.seed", 1, "which calls are drawn")
	calls   = flag.Int("siege.calls", 1500, "how many calls are sent")
	without = flag.String("siege.without", "lifecycle", "policies that are disabled one after the other, separated by commas: the siege must find an attack without each")
	most    = flag.Int("siege.most", 3000, "within how many calls it must")
	patient = flag.Duration("siege.shrink", 2*time.Minute, "how long a script may be made shorter")
)

// length is how many calls belong to an episode.
const length = 16

// Whatever a member sends, nothing runs without quota, quota is not held by nothing, and others are not kept from their
// work. Without a policy, the siege finds that: one that never finds anything proves nothing.
func TestSiege(t *testing.T) {
	w := start(t)
	t.Logf("seed %d: repeat with -siege.seed=%[1]d", *seed)
	if *calls > 0 {
		t.Run("defended", w.defended)
	}
	for policy := range strings.SplitSeq(*without, ",") {
		if policy != "" {
			t.Run("without "+policy, func(t *testing.T) { w.undefended(t, policy) })
		}
	}
}

func (w *world) defended(t *testing.T) {
	quota, err := quotawatch.Start(t.Context(), w.admin, os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	s := w.besiege(t, *seed, *calls)
	if err := quota.End(t.Context()); err != nil {
		t.Error(err)
	}
	s.report(t)
	w.sweep(t)
	for _, f := range s.findings {
		if !s.repeats[f.Episode()] {
			t.Errorf("%s\n%s", f, s.script(f))
		}
	}
	for _, crash := range w.crashes() {
		t.Error(crash)
	}
}

// siege is what has been sent, and what came of it.
type siege struct {
	*world
	seed    uint64
	referee referee.Referee

	mu       sync.Mutex
	sent     int
	number   int // of the next episode
	episodes map[string][]grammar.Call
	ended    map[string]time.Time
	outcomes map[string]int
	findings []referee.Finding
	scripts  map[referee.Finding]string
	repeats  map[string]bool // episodes that are parts of others
	looks    int
	canaries []time.Duration
}

// besiege sends calls in all lanes, and then watches what is left of them.
func (w *world) besiege(t *testing.T, seed uint64, calls int) *siege {
	t.Helper()
	s := w.begin(seed)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var watching, attacking sync.WaitGroup
	watching.Go(func() { s.watch(ctx) })
	watching.Go(func() { s.canary(ctx) })
	began := time.Now()
	for range lanes {
		attacking.Go(func() { s.attack(ctx, calls) })
	}
	attacking.Wait()
	t.Logf("%d calls were sent within %s", s.sent, time.Since(began).Round(time.Second))
	s.settle(ctx)
	s.shrinkAll(ctx)
	stop()
	watching.Wait()
	return s
}

func (w *world) begin(seed uint64) *siege {
	return &siege{
		world: w, seed: seed, episodes: map[string][]grammar.Call{}, ended: map[string]time.Time{}, outcomes: map[string]int{}, scripts: map[referee.Finding]string{}, repeats: map[string]bool{},
		referee: referee.Referee{Grace: atMostTwice(30 * time.Second), Lasting: atMostTwice(3 * time.Second), Stays: atMostTwice(time.Minute)},
	}
}

// atMostTwice is longer on a slow machine, but not so much that nothing lasts long enough.
func atMostTwice(quiet time.Duration) time.Duration { return min(patience.For(quiet), 2*quiet) }

// attack plays one episode after the other in a lane.
func (s *siege) attack(ctx context.Context, calls int) {
	namespace := <-s.lane
	defer func() { s.lane <- namespace }()
	for ctx.Err() == nil {
		name, drawn := s.next(calls)
		if drawn == nil {
			return
		}
		s.play(ctx, namespace, name, drawn)
	}
}

func (s *siege) play(ctx context.Context, namespace, name string, drawn []grammar.Call) {
	actor{s.world, namespace, name}.play(ctx, drawn, s.referee.Lasting+2*time.Second, s.count)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended[name] = time.Now()
}

func (s *siege) next(calls int) (string, []grammar.Call) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sent >= calls {
		return "", nil
	}
	s.number++
	name := fmt.Sprintf("e%d", s.number)
	s.episodes[name] = s.grammar.Episode(s.seed, s.number, length)
	return name, s.episodes[name]
}

func (s *siege) count(c grammar.Call, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if errors.Is(err, errNone) {
		return
	}
	s.sent++
	s.outcomes[string(c.Verb)+" "+outcome(err)]++
	if s.sent%500 == 0 {
		fmt.Fprintf(os.Stderr, "-- siege: %d calls, %d looks, %d findings, %d of another team's AppWrappers\n", s.sent, s.looks, len(s.findings), len(s.canaries))
	}
}

// watch judges moments until the context ends.
func (s *siege) watch(ctx context.Context) {
	for ctx.Err() == nil {
		if m, err := snapshot.Read(ctx, s.admin, time.Now(), nil); err == nil {
			s.judge(m)
		} else if ctx.Err() == nil {
			s.Logf("a look failed: %v", err)
		}
		pause(ctx, time.Second)
	}
}

func (s *siege) judge(m audit.Moment) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.looks++
	for _, f := range s.referee.Judge(m, s.ended) {
		known := slices.ContainsFunc(s.findings, func(other referee.Finding) bool { return other.Rule == f.Rule && other.Object == f.Object })
		if !known {
			s.findings = append(s.findings, f)
			s.Logf("after %d calls: %s", s.sent, f)
		}
	}
}

// settle waits until the referee can say what is left.
func (s *siege) settle(ctx context.Context) {
	pause(ctx, s.referee.Stays+s.referee.Lasting+5*time.Second)
}

func (s *siege) report(t *testing.T) {
	t.Helper()
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(s.outcomes)) {
		lines = append(lines, fmt.Sprintf("%s: %d", name, s.outcomes[name]))
	}
	t.Logf("%d calls in %d episodes, %d looks; %s", s.sent, s.number, s.looks, strings.Join(lines, ", "))
	slices.Sort(s.canaries)
	if len(s.canaries) > 0 {
		t.Logf("canary: %d AppWrappers of another team ended, the slowest within %s", len(s.canaries), s.canaries[len(s.canaries)-1].Round(100*time.Millisecond))
	}
	for reason, n := range s.referee.Excused {
		t.Logf("excused %d times: %s", n, reason)
	}
}
