// SPDX-License-Identifier: Apache-2.0

package bench

import "fmt"

// Reactions are what followed when nodes failed.
type Reactions struct {
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

// Table has a row for each fault.
func (r Reactions) Table() string {
	t := newTable("fault", "nodes at once", "run again by", "jobs that it hit", "found, s: p50", "p99", "all stopped, s: p50", "p99", "all run elsewhere, s: p50", "p99", "not within the limit")
	seconds := func(ms float64) string {
		if ms == 0 {
			return "-"
		}
		return number(ms / 1000)
	}
	for _, a := range r.Results {
		t.row(a.Fault, fmt.Sprint(a.Nodes), a.By, fmt.Sprint(a.Jobs), seconds(a.Detected.P50), seconds(a.Detected.P99),
			seconds(a.Reset.P50), seconds(a.Reset.P99), seconds(a.Again.P50), seconds(a.Again.P99), fmt.Sprint(a.Late))
	}
	return fmt.Sprintf("A cluster of %d nodes and %d pods:\n\n%s", r.Nodes, r.Pods, t)
}
