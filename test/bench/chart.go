// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"fmt"
	"slices"
)

// Chart is a picture of bars, which test/bench/plot draws.
type Chart struct {
	// Name is that of the file.
	Name  string `json:"name"`
	Title string `json:"title"`
	// Unit of the values.
	Unit string `json:"unit"`
	// Stacked bars follow each other; others are side by side.
	Stacked bool `json:"stacked,omitempty"`
	// Rows are the groups of bars, from above.
	Rows   []string `json:"rows"`
	Series []Series `json:"series"`
}

// Series are the bars of one colour, one for each row, and 0 where there is none.
type Series struct {
	Name   string    `json:"name"`
	Values []float64 `json:"values"`
	// Least and Most are the spread, if there is any.
	Least []float64 `json:"least,omitempty"`
	Most  []float64 `json:"most,omitempty"`
}

func (s *Series) add(spread Spread) {
	s.Values, s.Least, s.Most = append(s.Values, spread.Middle), append(s.Least, spread.Least), append(s.Most, spread.Most)
}

// Charts are the pictures of a report. Lives of many pods have other rates, and requests of their pods:
// they are in tables.
func (r Report) Charts(scenarios []Scenario) []Chart {
	scenarios = r.measured(scenarios)
	ofOnePod := slices.DeleteFunc(slices.Clone(scenarios), func(s Scenario) bool { return s.Pods > 1 })
	return []Chart{r.rates(ofOnePod), r.shares(ofOnePod), r.starts(scenarios)}
}

// kinds of lives, in the order of the legend.
var kinds = []struct {
	name string
	is   func(Scenario) bool
}{
	{"bare Jobs", Scenario.alone},
	{"bare Jobs through a queue", func(s Scenario) bool { return s.Queued && s.Bare }},
	{"AppWrappers", Scenario.plain},
	{"AppWrappers through a queue", func(s Scenario) bool { return s.Queued && !s.Bare }},
	{"AppWrappers that fail once", func(s Scenario) bool { return s.Failing }},
	{"Runs", func(s Scenario) bool { return s.Runs }},
}

// rates has a row for each shape, and in it the rate of each kind.
func (r Report) rates(scenarios []Scenario) Chart {
	c := Chart{Name: "bench-lives", Title: "Lives a second, from creation to success", Unit: "lives a second"}
	for _, s := range scenarios {
		if shape := s.shape(); !slices.Contains(c.Rows, shape) {
			c.Rows = append(c.Rows, shape)
		}
	}
	for _, kind := range kinds {
		series := Series{Name: kind.name}
		for _, row := range c.Rows {
			i := slices.IndexFunc(scenarios, func(s Scenario) bool { return s.shape() == row && kind.is(s) })
			if i < 0 {
				series.add(Spread{})
				continue
			}
			series.add(spreadOf(r.of(scenarios[i].Name), perSecond))
		}
		if slices.Max(append(series.Values, 0)) > 0 {
			c.Series = append(c.Series, series)
		}
	}
	return c
}

// mostAskers is how many of those who ask have a colour of their own.
const mostAskers = 7

// shares has a row for each scenario, and in it how often each client asks.
func (r Report) shares(scenarios []Scenario) Chart {
	scenarios = r.having(scenarios, Result.askers)
	c := Chart{Name: "bench-requests", Title: "Requests of a life, by client", Unit: "requests of a life", Stacked: true}
	sums := map[string]float64{}
	for _, s := range scenarios {
		c.Rows = append(c.Rows, s.label())
		for _, run := range r.of(s.Name) {
			for who, n := range run.askers() {
				sums[who] += n
			}
		}
	}
	names := byValue(sums)
	own := names[:min(mostAskers, len(names))]
	for _, who := range own {
		c.Series = append(c.Series, r.requestsOf(who, []string{who}, scenarios))
	}
	if others := names[len(own):]; len(others) > 0 {
		c.Series = append(c.Series, r.requestsOf("others", others, scenarios))
	}
	return c
}

// requestsOf is without a spread: bars are stacked.
func (r Report) requestsOf(title string, who []string, scenarios []Scenario) Series {
	series := Series{Name: title}
	for _, s := range scenarios {
		series.Values = append(series.Values, spreadOf(r.of(s.Name), func(run Result) float64 {
			sum := 0.0
			for _, one := range who {
				sum += run.Asked(one, "")
			}
			return sum
		}).Middle)
	}
	return series
}

// starts has a row for each scenario, and in it how long lives take to run.
func (r Report) starts(scenarios []Scenario) Chart {
	c := Chart{Name: "bench-running", Title: "From creation to Running", Unit: "seconds"}
	half, most := Series{Name: "p50"}, Series{Name: "p99"}
	seconds := func(value func(Result) float64) func(Result) float64 {
		return func(r Result) float64 { return value(r) / 1000 }
	}
	for _, s := range scenarios {
		c.Rows = append(c.Rows, s.label())
		half.add(spreadOf(r.of(s.Name), seconds(p50(ToRunning))))
		most.add(spreadOf(r.of(s.Name), seconds(p99(ToRunning))))
	}
	c.Series = []Series{half, most}
	return c
}

// shape says how many lives begin, and when: "50 of 20 pods at once".
func (s Scenario) shape() string {
	text := fmt.Sprint(s.Number)
	if s.Pods > 1 {
		text += fmt.Sprintf(" of %d pods", s.Pods)
	}
	if s.PerSecond > 0 {
		return fmt.Sprintf("%s, %v a second", text, s.PerSecond)
	}
	return text + " at once"
}

// label says whose lives they are, too.
func (s Scenario) label() string {
	for _, kind := range kinds {
		if kind.is(s) {
			return kind.name + ": " + s.shape()
		}
	}
	return s.Name
}
