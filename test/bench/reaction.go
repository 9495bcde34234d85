// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"encoding/json"
	"fmt"
	"slices"
)

// Reactions are what followed when nodes failed.
type Reactions []Sitting

// UnmarshalJSON also reads a single sitting, as it was written before there were several.
func (r *Reactions) UnmarshalJSON(text []byte) error {
	var one Sitting
	if err := json.Unmarshal(text, &one); err == nil {
		*r = Reactions{one}
		return nil
	}
	return json.Unmarshal(text, (*[]Sitting)(r))
}

// With adds what was measured. It replaces what was known of the same faults, and belongs to the sitting with the
// same head. Large clusters are first.
func (r Reactions) With(s Sitting) Reactions {
	var all Reactions
	for _, old := range r {
		old.Results = slices.DeleteFunc(slices.Clone(old.Results), func(a Reaction) bool {
			return old.Nodes == s.Nodes && slices.ContainsFunc(s.Results, a.ofTheSame)
		})
		if len(old.Results) > 0 {
			all = append(all, old)
		}
	}
	i := slices.IndexFunc(all, func(old Sitting) bool { return old.Head == s.Head && old.Nodes == s.Nodes && old.Pods == s.Pods })
	if i < 0 {
		all = append(all, s)
	} else {
		all[i].Results = append(all[i].Results, s.Results...)
	}
	slices.SortStableFunc(all, func(a, b Sitting) int { return b.Nodes - a.Nodes })
	return all
}

// Sitting is what was measured on one cluster in one go.
type Sitting struct {
	Head
	// Nodes and Pods of the cluster.
	Nodes int `json:"nodes"`
	Pods  int `json:"pods"`
	// Results in the order in which they were measured.
	Results []Reaction `json:"results"`
}

// Reaction is what followed one fault: quantiles over the jobs that it hit, each since it was hit.
type Reaction struct {
	// By whom the jobs are run again.
	By string `json:"by"`
	// Fault in a few words.
	Fault string `json:"fault"`
	// Nodes that failed at once, and the Jobs that had pods on them.
	Nodes int `json:"nodes"`
	Jobs  int `json:"jobs"`
	// Late jobs did not run again within the limit of the measurement.
	Late int `json:"late"`
	// Detected: the controller has said so. Reset: all pods from before have stopped; zero if some went on, as
	// they may. Again: all pods run, none of them on a node that failed.
	Detected Quantiles `json:"detected"`
	Reset    Quantiles `json:"reset"`
	Again    Quantiles `json:"again"`
}

// ofTheSame fault, under jobs of the same sort.
func (a Reaction) ofTheSame(b Reaction) bool {
	return a.By == b.By && a.Fault == b.Fault && a.Nodes == b.Nodes
}

// Table has a row for each fault, those of the same one beside each other.
func (s Sitting) Table() string {
	t := newTable("fault", "nodes at once", "run again by", "jobs that it hit", "found, s: p50", "p99", "all stopped, s: p50", "p99", "all run elsewhere, s: p50", "p99", "not within the limit")
	seconds := func(ms float64) string {
		if ms == 0 {
			return "-"
		}
		return number(ms / 1000)
	}
	results := slices.Clone(s.Results)
	order := func(a Reaction) int {
		return slices.IndexFunc(s.Results, func(b Reaction) bool { return a.Fault == b.Fault && a.Nodes == b.Nodes })
	}
	slices.SortStableFunc(results, func(a, b Reaction) int { return order(a) - order(b) })
	for _, a := range results {
		t.row(a.Fault, fmt.Sprint(a.Nodes), a.By, fmt.Sprint(a.Jobs), seconds(a.Detected.P50), seconds(a.Detected.P99),
			seconds(a.Reset.P50), seconds(a.Reset.P99), seconds(a.Again.P50), seconds(a.Again.P99), fmt.Sprint(a.Late))
	}
	return fmt.Sprintf("A cluster of %d nodes and %d pods:\n\n%s", s.Nodes, s.Pods, t)
}
