// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package siege_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mlbatch/mlbatch/test/siege/grammar"
	"github.com/mlbatch/mlbatch/test/siege/referee"
)

// mostShrunk is how many findings of a siege are repeated and made shorter.
const mostShrunk = 3

func (s *siege) shrinkAll(ctx context.Context) {
	s.mu.Lock()
	findings := slices.Clone(s.findings)
	s.mu.Unlock()
	for i, f := range findings {
		if i < mostShrunk {
			s.shrink(ctx, f)
		}
	}
}

// shrink repeats the episode of a finding with fewer and fewer calls. What is left is its script.
func (s *siege) shrink(ctx context.Context, f referee.Finding) {
	calls := s.episodes[f.Episode()]
	if calls == nil || f.Namespace() == "" {
		s.scripts[f] = "it belongs to no episode"
		return
	}
	until := time.Now().Add(*patient)
	fails := func(some []grammar.Call) bool { return time.Now().Before(until) && s.again(ctx, f, some) }
	head := fmt.Sprintf("seed %d, episode %s, as %s", s.seed, f.Episode(), *by)
	if fails(calls) {
		calls = grammar.Shrink(calls, fails)
	} else {
		head += "; it was not there again when the episode was repeated"
	}
	s.scripts[f] = "# " + head + "\n" + strings.Join(grammar.Script(calls, "e0"), "\n")
}

// script is what leads to a finding, as short as it has become.
func (s *siege) script(f referee.Finding) string {
	if short, is := s.scripts[f]; is {
		return short
	}
	return strings.Join(grammar.Script(s.episodes[f.Episode()], f.Episode()), "\n")
}

// again reports whether calls lead to the same finding.
func (s *siege) again(ctx context.Context, f referee.Finding, calls []grammar.Call) bool {
	s.mu.Lock()
	s.number++
	name := fmt.Sprintf("e%d", s.number)
	s.repeats[name] = true
	s.mu.Unlock()
	s.play(ctx, f.Namespace(), name, calls)
	s.lingering.Wait()
	if f.Rule == referee.Stays || f.Rule == referee.HeldByNothing {
		s.settle(ctx)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.findings, func(other referee.Finding) bool { return other.Rule == f.Rule && other.Episode() == name })
}
