// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"fmt"
	"slices"
	"strings"
)

// Who lets lives run in a comparison. The names are those of service accounts.
const (
	// Bare Jobs have no controller.
	Bare = "bare"
	// Upstream is the controller of AppWrapper 1.2.2.
	Upstream = "upstream"
	// OurOwn is ours, as a process beside the cluster.
	OurOwn = "ours"
)

// Comparison is what was measured of two controllers and of bare Jobs, in turn on one cluster.
type Comparison struct {
	Head
	Results []Turn `json:"results"`
}

// Turn is what was measured of one of them in one of its turns.
type Turn struct {
	By string `json:"by"`
	// Pair of turns, from 1. Only what is of the same pair is compared.
	Pair int `json:"pair"`
	Result
}

// Schedule is who comes when: each once in every pair, in the same order.
func Schedule(pairs int) []Turn {
	var all []Turn
	for pair := range pairs {
		for _, by := range []string{Bare, Upstream, OurOwn} {
			all = append(all, Turn{By: by, Pair: pair + 1})
		}
	}
	return all
}

// measure is a row of the comparison.
type measure struct {
	name string
	of   func(Turn) float64
	// never of bare Jobs, which have no controller.
	ofController bool
}

var measures = []measure{
	{name: "lives a second", of: func(t Turn) float64 { return t.PerSecond }},
	{name: "requests of a life by the controller", of: func(t Turn) float64 { return t.Asked(t.By, "") }, ofController: true},
	{name: "requests of a life by all", of: func(t Turn) float64 { return sum(t.askers()) }},
	{name: "processor time of the controller of a life, ms", of: func(t Turn) float64 { return t.CPU[t.By] }, ofController: true},
	{name: "unsuspended to Running, p50, ms", of: func(t Turn) float64 { return t.Times[ToRunning].P50 }},
	{name: "unsuspended to Running, p99, ms", of: func(t Turn) float64 { return t.Times[ToRunning].P99 }},
	{name: "deleted to gone, p50, ms", of: func(t Turn) float64 { return t.Times[ToGone].P50 }},
	{name: "deleted to gone, p99, ms", of: func(t Turn) float64 { return t.Times[ToGone].P99 }},
}

// Ratios are what one has of what another has in the same pair. What is 0 has no ratio.
func (c Comparison) Ratios(scenario string, of func(Turn) float64, one, other string) Spread {
	var all []float64
	for _, t := range c.of(scenario, one) {
		for _, o := range c.of(scenario, other) {
			if o.Pair == t.Pair && of(o) != 0 && of(t) != 0 {
				all = append(all, of(t)/of(o))
			}
		}
	}
	return SpreadOf(all)
}

func (c Comparison) of(scenario, by string) []Turn {
	return slices.DeleteFunc(slices.Clone(c.Results), func(t Turn) bool { return t.Scenario != scenario || t.By != by })
}

// Table compares all in one scenario.
func (c Comparison) Table(scenario string) string {
	t := newTable("", "bare Jobs", "AppWrapper 1.2.2", "ours", "ours / 1.2.2", "ours / bare Jobs")
	for _, m := range measures {
		column := func(by string) string {
			turns := c.of(scenario, by)
			if m.ofController && by == Bare || len(turns) == 0 {
				return ""
			}
			return spreadOf(turns, m.of).String()
		}
		ratio := func(other string) string {
			r := c.Ratios(scenario, m.of, OurOwn, other)
			if m.ofController && other == Bare || r.Number == 0 {
				return ""
			}
			return r.String()
		}
		t.row(m.name, column(Bare), column(Upstream), column(OurOwn), ratio(Upstream), ratio(Bare))
	}
	return t.String()
}

// Tables are those of all scenarios, each below what it says.
func (c Comparison) Tables(scenarios []Scenario) string {
	var parts []string
	for _, s := range scenarios {
		if len(c.of(s.Name, OurOwn)) > 0 {
			parts = append(parts, fmt.Sprintf("%s:\n\n%s", s.Says, c.Table(s.Name)))
		}
	}
	return strings.Join(parts, "\n")
}
