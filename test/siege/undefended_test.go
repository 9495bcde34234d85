// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package siege_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/mlbatch/mlbatch/test/siege/attacks"
	"github.com/mlbatch/mlbatch/test/siege/grammar"
	"github.com/mlbatch/mlbatch/test/siege/referee"
)

// front is a team in which a policy is disabled.
type front struct {
	without, namespace string
	sent, playing      int
	found              map[string]int // after how many calls there, by attack
	others             []string       // findings of no attack in the list
}

// open reports whether there is more to find. Time ends that only once something is found: a slow machine sends fewer
// calls.
func (f *front) open(inTime bool) bool {
	return f.sent < *most && (f.silent() || inTime && len(f.found) < len(attacks.Of(f.without)))
}

// silent reports whether nothing has been found.
func (f *front) silent() bool { return len(f.found)+len(f.others) == 0 }

// undefended expects that attacks succeed without a policy. A siege that never finds anything proves nothing.
func (w *world) undefended(t *testing.T, policies []string) {
	if len(policies) > teams {
		t.Fatalf("there are %d teams: at most as many policies can be disabled", teams)
	}
	s := w.begin(*seed)
	s.grammar.Costly = false // nobody would refuse that
	for i, policy := range policies {
		s.fronts = append(s.fronts, &front{without: policy, namespace: team(i), found: map[string]int{}})
	}
	w.lower(t, s.fronts)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var watching, attacking sync.WaitGroup
	watching.Go(func() { s.watch(ctx) })
	began := time.Now()
	for range forces {
		attacking.Go(func() { s.storm(ctx) })
	}
	attacking.Wait()
	s.lingering.Wait()
	if slices.ContainsFunc(s.fronts, (*front).silent) {
		s.settle(ctx)
	}
	t.Logf("%d calls were sent within %s", s.sent, time.Since(began).Round(time.Second))
	s.shrinkFirst(ctx)
	stop()
	watching.Wait()
	s.purging.Wait()
	s.report(t)
	s.reportFronts(t)
	w.sweep(t)
}

// storm plays episodes where there is most left to find.
func (s *siege) storm(ctx context.Context) {
	for ctx.Err() == nil {
		f, name, drawn := s.weakest()
		if f == nil {
			return
		}
		s.play(ctx, f.namespace, name, drawn)
		s.mu.Lock()
		f.playing--
		s.mu.Unlock()
	}
}

// weakest is the open front with the fewest calls, and an episode for it.
func (s *siege) weakest() (weakest *front, name string, drawn []grammar.Call) {
	s.mu.Lock()
	defer s.mu.Unlock()
	inTime := time.Now().Before(s.until)
	for _, f := range s.fronts {
		if f.open(inTime) && (weakest == nil || f.sent+f.playing*length < weakest.sent+weakest.playing*length) {
			weakest = f
		}
	}
	if weakest == nil {
		return nil, "", nil
	}
	weakest.playing++
	name, drawn = s.episode()
	return weakest, name, drawn
}

func (s *siege) frontOf(namespace string) *front {
	for _, f := range s.fronts {
		if f.namespace == namespace {
			return f
		}
	}
	return nil
}

// credit notes which attack a finding is, and has its episode removed, so that the quota is there for others. The lock
// is held.
func (s *siege) credit(f referee.Finding) {
	at := s.frontOf(f.Namespace())
	if at == nil || s.repeats[f.Episode()] {
		return
	}
	names := attacks.Found(f, at.without, s.accepted[f.Episode()])
	for _, name := range names {
		if at.found[name] == 0 {
			at.found[name] = at.sent
			fmt.Fprintf(os.Stderr, "-- siege: without %s, %d calls found: %s (%s)\n", at.without, at.sent, name, f)
		}
	}
	if len(names) == 0 {
		at.others = append(at.others, f.String())
	}
	s.purging.Go(func() { s.purge(context.WithoutCancel(s.Context()), at.namespace, f.Episode()) })
}

// shrinkFirst makes a script of the first finding, if only one policy is disabled.
func (s *siege) shrinkFirst(ctx context.Context) {
	s.mu.Lock()
	findings := slices.Clone(s.findings)
	s.mu.Unlock()
	if len(s.fronts) == 1 && len(findings) > 0 {
		s.shrink(ctx, findings[0])
		s.Logf("%s\n%s", findings[0], s.scripts[findings[0]])
	}
}

func (s *siege) reportFronts(t *testing.T) {
	t.Helper()
	for _, f := range s.fronts {
		for _, name := range attacks.Of(f.without) {
			if n := f.found[name]; n > 0 {
				t.Logf("without %s, %d calls found: %s", f.without, n, name)
			} else {
				t.Logf("without %s, %d calls did not find: %s", f.without, f.sent, name)
			}
		}
		for _, other := range f.others {
			t.Logf("without %s, also: %s", f.without, other)
		}
		if f.silent() {
			t.Errorf("%d calls found nothing without %s", f.sent, f.without)
		}
	}
}
