// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
)

// Report is all runs of all scenarios on one machine.
type Report struct {
	Head
	Results []Result `json:"results"`
	// Profile of the API server, if there is one.
	Profile *Profile `json:"profile,omitempty"`
	// Restart of our controller, if it was measured.
	Restart *Restart `json:"restart,omitempty"`
	// Reactions to faults, which may have been measured at other times.
	Reactions Reactions `json:"reactions,omitempty"`
}

// Read reads a report or a comparison. It tells whether there is such a file.
func Read(file string, into any) (there bool, err error) {
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err == nil {
		err = json.Unmarshal(text, into)
	}
	if err != nil {
		return false, fmt.Errorf("cannot read what was measured: %w", err)
	}
	return true, nil
}

// Write writes a report or a comparison.
func Write(file string, measured any) error {
	text, err := json.MarshalIndent(measured, "", " ")
	if err == nil {
		err = os.WriteFile(file, append(text, '\n'), 0o644)
	}
	if err != nil {
		return fmt.Errorf("cannot write what was measured: %w", err)
	}
	return nil
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

// measured are the scenarios that have results.
func (r Report) measured(scenarios []Scenario) []Scenario {
	return slices.DeleteFunc(slices.Clone(scenarios), func(s Scenario) bool { return len(r.of(s.Name)) == 0 })
}

// Ratio is the rate of a scenario as a part of that of bare Jobs of the same shape, if there are any.
func (r Report) Ratio(s Scenario, scenarios []Scenario) (float64, bool) {
	if s.alone() {
		return 0, false
	}
	return r.beside(s, scenarios, Scenario.alone)
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
	return spreadOf(ours, perSecond).Middle / spreadOf(others, perSecond).Middle, true
}

func perSecond(r Result) float64 { return r.PerSecond }
