// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"maps"
	"slices"
)

// Workloads is what Kueue's own measurement of its scheduler says, without our controllers and with them,
// in turn on one cluster. It makes Workloads that no job has.
type Workloads struct {
	Head
	Results []WorkloadsTurn `json:"results"`
}

// WorkloadsTurn is what it says once.
type WorkloadsTurn struct {
	// With our controllers beside Kueue.
	With bool `json:"with,omitempty"`
	// Pair of turns, from 1: without, and then with them.
	Pair int `json:"pair"`
	// Number of Workloads that were admitted and ended, and how many of them a second.
	Number    int     `json:"number"`
	PerSecond float64 `json:"perSecond"`
	// Admitted is the average time from creation to admission, in ms, by class of Workloads.
	Admitted map[string]float64 `json:"admitted"`
	// CPU is the processor time of a Workload, in ms, by process.
	CPU map[string]float64 `json:"cpu"`
}

// Table has both, and what one has of the other in the same pair.
func (w Workloads) Table() string {
	t := newTable("", "Kueue alone", "with our controllers", "of that")
	row := func(name string, of func(WorkloadsTurn) float64) {
		var ratios []float64
		with := w.of(true)
		for i, without := range w.of(false) {
			if i < len(with) && of(without) > 0 {
				ratios = append(ratios, of(with[i])/of(without))
			}
		}
		ratio := ""
		if len(ratios) > 0 {
			ratio = SpreadOf(ratios).String()
		}
		t.row(name, spreadOf(w.of(false), of).String(), spreadOf(with, of).String(), ratio)
	}
	row("Workloads a second", func(r WorkloadsTurn) float64 { return r.PerSecond })
	if len(w.Results) > 0 {
		for _, class := range slices.Sorted(maps.Keys(w.Results[0].Admitted)) {
			row("created to admitted, "+class+", on average, ms", func(r WorkloadsTurn) float64 { return r.Admitted[class] })
		}
	}
	for _, process := range []string{"kueue-controller-manager", "kube-apiserver", Ours, OfRuns} {
		row("processor time of a Workload, "+process+", ms", func(r WorkloadsTurn) float64 { return r.CPU[process] })
	}
	return t.String()
}

// of are the turns without our controllers or with them, in their order.
func (w Workloads) of(with bool) []WorkloadsTurn {
	return slices.DeleteFunc(slices.Clone(w.Results), func(r WorkloadsTurn) bool { return r.With != with })
}
