// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package cluster_test

import (
	"flag"
	"slices"
	"testing"

	"github.com/mlbatch/mlbatch/test/auditlog"
	"github.com/mlbatch/mlbatch/test/bench"
	"github.com/mlbatch/mlbatch/test/sandbox"
)

var (
	pairs      = flag.Int("bench.pairs", 0, "compare with AppWrapper 1.2.2 so often; 0 is once, with fewer lives")
	comparison = flag.String("bench.comparison", "", "file for the comparison as JSON, with -bench.pairs")
)

// Upstream's controller and ours take turns on one cluster without the platform, and so do bare Jobs.
// What they cost is compared; nothing about it is asserted.
func TestComparison(t *testing.T) {
	scenarios, err := bench.Compared()
	if err != nil {
		t.Fatal(err)
	}
	rounds := *pairs
	if rounds == 0 {
		rounds, scenarios = 1, shorter(scenarios, someLives)
	}
	admin, cluster := sandbox.Bare(t, "bench-compare", 26641, nodes)
	m := &machine{T: t, admin: admin, processes: processes{cluster: cluster.Dir()}, log: auditlog.Of(cluster.Dir())}
	rivals := newRivals(m, cluster)
	c := bench.Comparison{Head: describe(t)}
	for _, turn := range bench.Schedule(rounds) {
		end := rivals.start(turn.By)
		for _, s := range slices.Clone(scenarios) {
			s.Bare = turn.By == bench.Bare
			turn.Result = m.run(s)
			t.Logf("pair %d, %s, %s: %.1f lives a second", turn.Pair, turn.By, s.Name, turn.PerSecond)
			c.Results = append(c.Results, turn)
		}
		end()
	}
	t.Logf("\n%s\n\n%s", c.Head, c.Tables(scenarios))
	if *pairs > 0 && *comparison != "" {
		keep(t, *comparison, c)
	}
}
