// SPDX-License-Identifier: Apache-2.0

package bench

import "slices"

// taxes are what an AppWrapper may cost beside a bare Job in the same queue.
var taxes = []struct {
	name string
	of   func(Result) float64
}{
	{"requests of a life by all", func(r Result) float64 { return sum(r.askers()) }},
	{"processor time of a life by all, ms", func(r Result) float64 { return sum(r.CPU) }},
	{"to Running, p50, ms", p50(ToRunning)},
	{"to Running, p99, ms", p99(ToRunning)},
}

// Tax is a table of what an AppWrapper costs beside a bare Job, where both go through a queue.
func (r Report) Tax(scenarios []Scenario) string {
	t := newTable("through a queue", "what", "a bare Job", "an AppWrapper", "more")
	for _, s := range r.measured(scenarios) {
		if !s.Queued || s.Bare {
			continue
		}
		i := slices.IndexFunc(scenarios, func(other Scenario) bool { return other.Queued && other.Bare && other.ofOneShape(s) })
		if i < 0 || len(r.of(scenarios[i].Name)) == 0 {
			continue
		}
		for _, tax := range taxes {
			job, wrapper := spreadOf(r.of(scenarios[i].Name), tax.of), spreadOf(r.of(s.Name), tax.of)
			t.row(s.shape(), tax.name, job.String(), wrapper.String(), number(wrapper.Middle-job.Middle))
		}
	}
	return t.String()
}
