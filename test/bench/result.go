// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"
)

// Result is one run of a scenario.
type Result struct {
	Scenario string `json:"scenario"`
	Lives    int    `json:"lives"`
	// PerSecond is the lives from creation to success, each second.
	PerSecond float64 `json:"perSecond"`
	// Times of a life: ToRunning and ToSucceeded since its creation, ToGone since its deletion.
	Times map[string]Quantiles `json:"times"`
	// Requests of a life, by who asks, and by what is asked.
	Requests map[string]map[string]float64 `json:"requests"`
	// CPU is the processor time of a life, by process, in milliseconds.
	CPU map[string]float64 `json:"cpuMilliseconds"`
}

// Our controllers, whose requests the report lists one by one: that of AppWrappers, and that of Runs.
const (
	Ours   = "appwrapper-controller-manager"
	OfRuns = "codeflare-controller-manager"
)

// The times of a life.
const (
	ToRunning   = "to Running"
	ToSucceeded = "to Succeeded"
	ToGone      = "to gone"
)

// Quantiles of a time, in milliseconds.
type Quantiles struct {
	P50 float64 `json:"p50"`
	P99 float64 `json:"p99"`
}

// QuantilesOf sorts the times.
func QuantilesOf(times []time.Duration) Quantiles {
	if len(times) == 0 {
		return Quantiles{}
	}
	slices.Sort(times)
	at := func(percent int) float64 {
		return float64(times[(len(times)-1)*percent/100]) / float64(time.Millisecond)
	}
	return Quantiles{at(50), at(99)}
}

// Asked is the number of requests of a life that someone sends; what "" is all.
func (r Result) Asked(who, what string) float64 {
	if what != "" {
		return r.Requests[who][what]
	}
	sum := 0.0
	for _, n := range r.Requests[who] {
		sum += n
	}
	return sum
}

// Report is all runs of all scenarios on one machine.
type Report struct {
	Date     string   `json:"date"`
	Commit   string   `json:"commit"`
	Machine  string   `json:"machine"`
	Versions string   `json:"versions"`
	Results  []Result `json:"results"`
}

// of returns the runs of a scenario.
func (r Report) of(scenario string) []Result {
	var runs []Result
	for _, run := range r.Results {
		if run.Scenario == scenario {
			runs = append(runs, run)
		}
	}
	return runs
}

// spread is the middle value, and the smallest and the largest.
func spread(runs []Result, value func(Result) float64) string {
	values := make([]float64, 0, len(runs))
	for _, run := range runs {
		values = append(values, value(run))
	}
	slices.Sort(values)
	middle := values[len(values)/2]
	if len(values) == 1 {
		return number(middle)
	}
	return fmt.Sprintf("%s (%s–%s)", number(middle), number(values[0]), number(values[len(values)-1]))
}

func number(v float64) string {
	switch {
	case v == 0:
		return "0"
	case v < 10:
		return fmt.Sprintf("%.2f", v)
	case v < 100:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.0f", v)
}

// Write prints the report as Markdown. Values are the median of the runs, with the smallest and the
// largest.
func (r Report) Write(w io.Writer, scenarios []Scenario) error {
	b := &strings.Builder{}
	fmt.Fprintf(b, "Measured on %s at commit `%s`: %s, %s.\n\n", r.Date, r.Commit, r.Machine, r.Versions)
	fmt.Fprint(b, "| scenario | runs | lives a second | of bare Jobs | of AppWrappers | to Running, ms: p50 | p99 | to gone, ms: p50 | p99 |\n|---|---|---|---|---|---|---|---|---|\n")
	for _, s := range scenarios {
		runs := r.of(s.Name)
		if len(runs) == 0 {
			continue
		}
		column := func(value func(Result) float64) string { return spread(runs, value) }
		fmt.Fprintf(b, "| %s | %d | %s | %s | %s | %s | %s | %s | %s |\n", s.Says, len(runs),
			column(func(r Result) float64 { return r.PerSecond }), percent(r.Ratio(s, scenarios)), percent(r.OfAppWrappers(s, scenarios)),
			column(func(r Result) float64 { return r.Times[ToRunning].P50 }), column(func(r Result) float64 { return r.Times[ToRunning].P99 }),
			column(func(r Result) float64 { return r.Times[ToGone].P50 }), column(func(r Result) float64 { return r.Times[ToGone].P99 }))
	}
	r.table(b, "requests of a life", scenarios, func(r Result) map[string]float64 {
		sums := map[string]float64{}
		for who := range r.Requests {
			sums[who] = r.Asked(who, "")
		}
		return sums
	})
	for _, who := range []string{Ours, OfRuns} {
		r.table(b, "requests of a life by "+who, scenarios, func(r Result) map[string]float64 { return r.Requests[who] })
	}
	r.table(b, "processor time of a life, in ms", scenarios, func(r Result) map[string]float64 { return r.CPU })
	_, err := io.WriteString(w, b.String())
	return err
}

func percent(ratio float64, ok bool) string {
	if !ok {
		return ""
	}
	return fmt.Sprintf("%.0f %%", 100*ratio)
}

// Ratio is the rate of a scenario as a part of that of bare Jobs of the same shape, if there are any.
func (r Report) Ratio(s Scenario, scenarios []Scenario) (float64, bool) {
	if s.Bare {
		return 0, false
	}
	return r.beside(s, scenarios, func(other Scenario) bool { return other.Bare })
}

// OfAppWrappers is the rate of Runs as a part of that of as many AppWrappers, if there are any.
func (r Report) OfAppWrappers(s Scenario, scenarios []Scenario) (float64, bool) {
	if !s.Runs {
		return 0, false
	}
	return r.beside(s, scenarios, Scenario.plain)
}

// beside compares the rate with that of a scenario of the same shape.
func (r Report) beside(s Scenario, scenarios []Scenario, with func(Scenario) bool) (float64, bool) {
	i := slices.IndexFunc(scenarios, func(other Scenario) bool { return with(other) && other.ofOneShape(s) })
	if i < 0 {
		return 0, false
	}
	ours, others := r.of(s.Name), r.of(scenarios[i].Name)
	if len(ours) == 0 || len(others) == 0 {
		return 0, false
	}
	return middle(ours) / middle(others), true
}

func middle(runs []Result) float64 {
	rates := make([]float64, 0, len(runs))
	for _, run := range runs {
		rates = append(rates, run.PerSecond)
	}
	slices.Sort(rates)
	return rates[len(rates)/2]
}

// table has a row for each name and a column for each scenario. Rows that are 0 everywhere are left out.
func (r Report) table(b *strings.Builder, title string, scenarios []Scenario, values func(Result) map[string]float64) {
	var columns []Scenario
	sums := map[string]float64{}
	for _, s := range scenarios {
		runs := r.of(s.Name)
		if len(runs) > 0 {
			columns = append(columns, s)
		}
		for _, run := range runs {
			for name, v := range values(run) {
				sums[name] += v
			}
		}
	}
	fmt.Fprintf(b, "\n| %s |", title)
	for _, s := range columns {
		fmt.Fprintf(b, " %s |", s.Name)
	}
	fmt.Fprintf(b, "\n|---|%s\n", strings.Repeat("---|", len(columns)))
	names := slices.SortedFunc(maps.Keys(sums), func(x, y string) int { return cmp.Or(cmp.Compare(sums[y], sums[x]), cmp.Compare(x, y)) })
	for _, name := range names {
		if number(sums[name]) == "0.00" || sums[name] == 0 {
			continue
		}
		fmt.Fprintf(b, "| %s |", name)
		for _, s := range columns {
			fmt.Fprintf(b, " %s |", spread(r.of(s.Name), func(run Result) float64 { return values(run)[name] }))
		}
		fmt.Fprintln(b)
	}
}
