// SPDX-License-Identifier: Apache-2.0

package bench

import (
	_ "embed"
	"fmt"
	"maps"
	"slices"

	"sigs.k8s.io/yaml"
)

// Budget is what a scenario may cost. All are counts and ratios: none depends on the machine alone.
type Budget struct {
	// Requests of a life, by client, and by what is asked; "all" is their sum. What is asked and
	// not listed has no budget of its own, but counts in the sum.
	Requests map[string]map[string]float64 `json:"requests"`
	// OfBareJobs is the least rate, as a part of that of bare Jobs in the same run; 0 for any.
	OfBareJobs float64 `json:"ofBareJobs,omitempty"`
	// OfAppWrappers is the least rate of Runs, as a part of that of AppWrappers in the same run; 0 for any.
	OfAppWrappers float64 `json:"ofAppWrappers,omitempty"`
}

//go:embed budgets.yaml
var budgets []byte

// Budgets are those of budgets.yaml, by scenario.
func Budgets() (map[string]Budget, error) {
	all := map[string]Budget{}
	return all, yaml.UnmarshalStrict(budgets, &all)
}

// Exceeded compares a report with budgets, and returns a sentence for each that is exceeded. A
// scenario that was not measured exceeds nothing.
func Exceeded(r Report, scenarios []Scenario, budgets map[string]Budget) (all []string) {
	for _, s := range scenarios {
		budget, runs := budgets[s.Name], r.of(s.Name)
		for _, who := range slices.Sorted(maps.Keys(budget.Requests)) {
			for _, what := range slices.Sorted(maps.Keys(budget.Requests[who])) {
				all = append(all, tooMany(s.Name, who, what, budget.Requests[who][what], runs)...)
			}
		}
		ratio, ok := r.Ratio(s, scenarios)
		all = append(all, tooSlow(s.Name, "bare Jobs", ratio, budget.OfBareJobs, ok)...)
		ratio, ok = r.OfAppWrappers(s, scenarios)
		all = append(all, tooSlow(s.Name, "AppWrappers", ratio, budget.OfAppWrappers, ok)...)
	}
	return all
}

func tooSlow(scenario, others string, ratio, least float64, measured bool) []string {
	if !measured || ratio >= least {
		return nil
	}
	return []string{fmt.Sprintf("%s: the rate is %.2f of that of %s, and must be at least %.2f", scenario, ratio, others, least)}
}

// Limited are the scenarios that have a budget, and those to which it compares them.
func Limited(scenarios []Scenario, budgets map[string]Budget) (some []Scenario) {
	for _, s := range scenarios {
		compared := slices.ContainsFunc(scenarios, func(other Scenario) bool {
			budget := budgets[other.Name]
			return other.ofOneShape(s) && (s.alone() && budget.OfBareJobs > 0 || s.plain() && budget.OfAppWrappers > 0)
		})
		if _, limited := budgets[s.Name]; limited || compared {
			some = append(some, s)
		}
	}
	return some
}

func tooMany(scenario, who, what string, most float64, runs []Result) (all []string) {
	key := what
	if what == "all" {
		key = ""
	}
	for _, run := range runs {
		if n := run.Asked(who, key); n > most {
			all = append(all, fmt.Sprintf("%s: %s sent %.2f requests of a life (%s), and may send %.2f", scenario, who, n, what, most))
		}
	}
	return all
}
