// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// table is one in Markdown.
type table struct {
	strings.Builder
}

func newTable(columns ...string) *table {
	t := &table{}
	t.row(columns...)
	fmt.Fprintf(t, "|%s\n", strings.Repeat("---|", len(columns)))
	return t
}

func (t *table) row(cells ...string) { fmt.Fprintf(t, "| %s |\n", strings.Join(cells, " | ")) }

// Tables are the whole report. Values are the median of the runs, with the least and the greatest.
func (r Report) Tables(scenarios []Scenario) string {
	return strings.Join([]string{
		r.Lives(scenarios), r.Tax(scenarios), r.Requests(scenarios), r.RequestsOf(Ours, scenarios), r.RequestsOf(OfRuns, scenarios), r.Processors(scenarios),
		r.Retries(scenarios), r.Memories(scenarios), r.MemoryOfRuns(scenarios), r.Profile.Table(), r.Restart.String(),
	}, "\n")
}

// Lives is a table of rates and times.
func (r Report) Lives(scenarios []Scenario) string {
	t := newTable("scenario", "runs", "lives a second", "of bare Jobs", "of AppWrappers", "to Running, ms: p50", "p99", "to gone, ms: p50", "p99")
	for _, s := range r.measured(scenarios) {
		runs := r.of(s.Name)
		column := func(value func(Result) float64) string { return spreadOf(runs, value).String() }
		t.row(s.Says, fmt.Sprint(len(runs)), column(perSecond), percent(r.Ratio(s, scenarios)), percent(r.OfAppWrappers(s, scenarios)),
			column(p50(ToRunning)), column(p99(ToRunning)), column(p50(ToGone)), column(p99(ToGone)))
	}
	return t.String()
}

// Retries is a table of lives that fail once.
func (r Report) Retries(scenarios []Scenario) string {
	t := newTable("scenario", "failed to running again, ms: p50", "p99", "requests of a life by "+Ours)
	for _, s := range r.measured(scenarios) {
		if !s.Failing {
			continue
		}
		column := func(value func(Result) float64) string { return spreadOf(r.of(s.Name), value).String() }
		t.row(s.Says, column(p50(ToAgain)), column(p99(ToAgain)), column(func(r Result) float64 { return r.Asked(Ours, "") }))
	}
	return t.String()
}

func p50(step string) func(Result) float64 {
	return func(r Result) float64 { return r.Times[step].P50 }
}

func p99(step string) func(Result) float64 {
	return func(r Result) float64 { return r.Times[step].P99 }
}

func percent(ratio float64, ok bool) string {
	if !ok {
		return ""
	}
	return fmt.Sprintf("%.0f %%", 100*ratio)
}

// Requests is a table of the requests of a life, by client.
func (r Report) Requests(scenarios []Scenario) string {
	return r.table("requests of a life", scenarios, Result.askers)
}

// askers is the number of requests of a life, by client.
func (r Result) askers() map[string]float64 {
	sums := map[string]float64{}
	for who := range r.Requests {
		sums[who] = r.Asked(who, "")
	}
	return sums
}

// RequestsOf is a table of the requests of a life that someone sends, by what is asked.
func (r Report) RequestsOf(who string, scenarios []Scenario) string {
	return r.table("requests of a life by "+who, scenarios, func(r Result) map[string]float64 { return r.Requests[who] })
}

// Processors is a table of the processor time of a life, by process.
func (r Report) Processors(scenarios []Scenario) string {
	return r.table("processor time of a life, in ms", scenarios, func(r Result) map[string]float64 { return r.CPU })
}

// Memories is a table of the most resident memory, by process.
func (r Report) Memories(scenarios []Scenario) string {
	return r.table("most resident memory, in MiB", scenarios, func(r Result) map[string]float64 { return r.Memory })
}

// having are the scenarios for which some of these values are not 0.
func (r Report) having(scenarios []Scenario, values func(Result) map[string]float64) []Scenario {
	return slices.DeleteFunc(slices.Clone(scenarios), func(s Scenario) bool {
		return !slices.ContainsFunc(r.of(s.Name), func(run Result) bool { return sum(values(run)) > 0 })
	})
}

// table has a row for each name, the greatest first, and a column for each scenario. Rows and columns
// that are 0 everywhere are left out, and so is a table of nothing else.
func (r Report) table(title string, scenarios []Scenario, values func(Result) map[string]float64) string {
	scenarios = r.having(scenarios, values)
	if len(scenarios) == 0 {
		return ""
	}
	head := []string{title}
	sums := map[string]float64{}
	for _, s := range scenarios {
		head = append(head, s.Name)
		for _, run := range r.of(s.Name) {
			for name, v := range values(run) {
				sums[name] += v
			}
		}
	}
	t := newTable(head...)
	for _, name := range byValue(sums) {
		if number(sums[name]) == "0.00" || sums[name] == 0 {
			continue
		}
		row := []string{name}
		for _, s := range scenarios {
			row = append(row, spreadOf(r.of(s.Name), func(run Result) float64 { return values(run)[name] }).String())
		}
		t.row(row...)
	}
	return t.String()
}

// byValue are the names, that of the greatest value first.
func byValue(values map[string]float64) []string {
	return slices.SortedFunc(maps.Keys(values), func(x, y string) int { return cmp.Or(cmp.Compare(values[y], values[x]), cmp.Compare(x, y)) })
}
