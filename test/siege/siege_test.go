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
	"github.com/mlbatch/mlbatch/test/siege/attacks"
	"github.com/mlbatch/mlbatch/test/siege/grammar"
	"github.com/mlbatch/mlbatch/test/siege/referee"
	"github.com/mlbatch/mlbatch/tools/mlbatch/answers/audit"
	"github.com/mlbatch/mlbatch/tools/mlbatch/snapshot"
)

var (
	seed    = flag.Uint64("siege.seed", 1, "which calls are drawn")
	by      = flag.String("siege.actor", "member", "who attacks: a member, somebody with Kubernetes' role edit or admin, or a pod")
	calls   = flag.Int("siege.calls", 100000, "how many calls are sent at most")
	without = flag.String("siege.without", "lifecycle", "policies, separated by commas, or all: each is disabled in one team, and the siege must find an attack there")
	most    = flag.Int("siege.most", 3000, "within how many calls in each of these teams it must")
	within  = flag.Duration("siege.for", time.Minute, "for how long calls are sent at most, with all policies and without some")
	patient = flag.Duration("siege.shrink", time.Minute, "how long a script may be made shorter")
)

// length is how many calls belong to an episode.
const length = 16

// Whatever a member sends, nothing runs without quota, quota is not held by nothing, and others are not kept from their
// work. Without a policy, the siege finds that: one that never finds anything proves nothing.
func TestSiege(t *testing.T) {
	if _, known := attackers[*by]; !known {
		t.Fatalf("-siege.actor is one of %s", strings.Join(slices.Sorted(maps.Keys(attackers)), ", "))
	}
	w := start(t)
	t.Logf("seed %d: repeat with -siege.seed=%[1]d", *seed)
	if *calls > 0 {
		t.Run("defended", w.defended)
	}
	if *without != "" {
		t.Run("without "+*without, func(t *testing.T) { w.undefended(t, disabled()) })
	}
}

func disabled() []string {
	if *without == "all" {
		return attacks.Defences()
	}
	return strings.Split(*without, ",")
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
	if accepted := len(s.accepted); w.who.powerless && accepted > 0 {
		t.Errorf("a pod may do something: %v", s.accepted)
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
	accepted map[string][]grammar.Call // by episode
	fronts   []*front                  // if policies are disabled

	until     time.Time
	lingering sync.WaitGroup // episodes that the referee still looks at
	purging   sync.WaitGroup // those that are removed because something was found
}

// besiege sends calls in all teams, and then watches what is left of them.
func (w *world) besiege(t *testing.T, seed uint64, calls int) *siege {
	t.Helper()
	s := w.begin(seed)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var watching, attacking sync.WaitGroup
	watching.Go(func() { s.watch(ctx) })
	watching.Go(func() { s.canary(ctx) })
	began := time.Now()
	for force := range forces {
		attacking.Go(func() { s.attack(ctx, team(force), calls) })
	}
	attacking.Wait()
	s.lingering.Wait()
	t.Logf("%d calls were sent within %s", s.sent, time.Since(began).Round(time.Second))
	s.settle(ctx)
	s.shrinkAll(ctx)
	stop()
	watching.Wait()
	return s
}

func (w *world) begin(seed uint64) *siege {
	return &siege{
		world: w, seed: seed, until: time.Now().Add(*within), episodes: map[string][]grammar.Call{}, ended: map[string]time.Time{}, outcomes: map[string]int{}, scripts: map[referee.Finding]string{}, repeats: map[string]bool{}, accepted: map[string][]grammar.Call{},
		referee: referee.Referee{Known: w.who.known},
	}
}

// moment is how long controllers, and the garbage collector, may take for what they do one after the other.
func moment() time.Duration { return patience.For(3 * time.Second) }

// grace is how long pods may take to end after their time is up.
func grace() time.Duration { return atMostTwice(30 * time.Second) }

// stay is how long quota may be held by nothing.
func stay() time.Duration { return atMostTwice(time.Minute) }

// atMostTwice is longer on a slow machine, but not so much that nothing lasts long enough.
func atMostTwice(quiet time.Duration) time.Duration { return min(patience.For(quiet), 2*quiet) }

// attack plays one episode after the other in a namespace.
func (s *siege) attack(ctx context.Context, namespace string, calls int) {
	for ctx.Err() == nil {
		name, drawn := s.next(calls)
		if drawn == nil {
			return
		}
		s.play(ctx, namespace, name, drawn)
	}
}

// play sends an episode. The referee has time to see what has come of it while the next one begins. What it has created
// is then deleted.
func (s *siege) play(ctx context.Context, namespace, name string, drawn []grammar.Call) {
	a := actor{s.world, namespace, name}
	a.play(ctx, drawn, func(c grammar.Call, err error) { s.count(a, c, err) })
	s.lingering.Go(func() {
		pause(ctx, moment()+2*time.Second)
		a.clear(context.WithoutCancel(ctx), drawn)
		s.mu.Lock()
		defer s.mu.Unlock()
		s.ended[name] = time.Now()
	})
}

func (s *siege) next(calls int) (string, []grammar.Call) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sent >= calls || time.Now().After(s.until) {
		return "", nil
	}
	return s.episode()
}

// episode draws the next one. The lock is held.
func (s *siege) episode() (string, []grammar.Call) {
	s.number++
	name := fmt.Sprintf("e%d", s.number)
	s.episodes[name] = s.grammar.Episode(s.seed, s.number, length)
	return name, s.episodes[name]
}

func (s *siege) count(a actor, c grammar.Call, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if errors.Is(err, errNone) {
		return
	}
	s.sent++
	if err == nil {
		s.accepted[a.episode] = append(s.accepted[a.episode], c)
	}
	if f := s.frontOf(a.namespace); f != nil {
		f.sent++
	}
	s.outcomes[string(c.Verb)+" "+outcome(err)]++
	if s.sent%500 == 0 {
		fmt.Fprintf(os.Stderr, "-- siege: %d calls, %d looks, %d findings, %d of another team's AppWrappers\n", s.sent, s.looks, len(s.findings), len(s.canaries))
	}
}

// watch judges moments until the context ends.
func (s *siege) watch(ctx context.Context) {
	for before := s.began; ctx.Err() == nil; pause(ctx, time.Second) {
		m, err := snapshot.Read(ctx, s.admin, time.Now(), nil)
		now, unread := s.restarts(ctx)
		if err := errors.Join(err, unread); err != nil {
			if ctx.Err() == nil {
				s.Logf("a look failed: %v", err)
			}
			continue
		}
		if !maps.Equal(before, now) {
			fmt.Fprintln(os.Stderr, "-- siege: a program of the platform begins again: nothing counts for a while")
			s.judgeFrom(time.Now().Add(stay()))
		}
		before = now
		s.judge(m)
	}
}

// judgeFrom forgets what is wrong now. A program that begins again has to catch up first, as after it has lost its
// lease on a slow machine. Why it began again is judged at the end.
func (s *siege) judgeFrom(then time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.referee.From = then
}

func (s *siege) judge(m audit.Moment) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.looks++
	s.referee.Grace, s.referee.Lasting, s.referee.Stays = grace(), moment(), stay()
	for _, f := range s.referee.Judge(m, s.ended) {
		known := slices.ContainsFunc(s.findings, func(other referee.Finding) bool { return other.Rule == f.Rule && other.Object == f.Object })
		if !known {
			s.findings = append(s.findings, f)
			s.Logf("after %d calls: %s", s.sent, f)
			s.credit(f)
		}
	}
}

// settle waits until the referee can say what is left.
func (s *siege) settle(ctx context.Context) {
	pause(ctx, stay()+moment()+5*time.Second)
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
