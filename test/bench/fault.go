// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Faults are what followed when nodes, programs and quota failed under one job, beside healthy work.
type Faults struct {
	Head
	// Results in the order in which they were measured. A fault that was injected several times has as many.
	Results []Fault `json:"results"`
}

// Fault is what followed one fault, once.
type Fault struct {
	// Says is the fault in a few words.
	Says string `json:"says"`
	// Cause is the name that the platform gives it; empty if it is none, and nothing is to be done.
	Cause string `json:"cause,omitempty"`
	// Found is how long it took until the platform acted, and Again until all pods ran again. Zero if neither
	// is to happen.
	Found metav1.Duration `json:"found"`
	Again metav1.Duration `json:"again"`
	// GPUs of the job, which do nothing meanwhile.
	GPUs int64 `json:"gpus"`
}

// lost are the GPU-hours that pass until the job runs again or has failed. What it has done since its
// last checkpoint is lost, too, and is not counted.
func (f Fault) lost() float64 {
	return max(f.Found.Hours(), f.Again.Hours()) * float64(f.GPUs)
}

// Table has a row for each fault, and one for all.
func (f Faults) Table() string {
	t := newTable("fault", "cause", "times", "found, s: p50", "p99", "runs again, s: p50", "p99", "GPU-hours lost each time")
	var says []string
	for _, r := range f.Results {
		if !slices.Contains(says, r.Says) {
			says = append(says, r.Says)
		}
	}
	for _, name := range says {
		t.fault(name, slices.DeleteFunc(slices.Clone(f.Results), func(r Fault) bool { return r.Says != name }))
	}
	all := slices.Clone(f.Results)
	for i := range all {
		all[i].Cause = ""
	}
	t.fault("all", all)
	return t.String()
}

func (t *table) fault(name string, all []Fault) {
	cause, lost := "", 0.0
	var found, again []time.Duration
	for _, f := range all {
		lost += f.lost() / float64(len(all))
		if f.Found.Duration > 0 {
			found = append(found, f.Found.Duration)
		}
		if f.Again.Duration > 0 {
			again = append(again, f.Again.Duration)
		}
		if f.Cause != "" {
			cause = "`" + f.Cause + "`"
		}
	}
	in := func(times []time.Duration, quantile func(Quantiles) float64) string {
		if len(times) == 0 {
			return "-"
		}
		return fmt.Sprintf("%.1f", quantile(QuantilesOf(times))/1000)
	}
	half := func(q Quantiles) float64 { return q.P50 }
	most := func(q Quantiles) float64 { return q.P99 }
	t.row(name, cause, fmt.Sprint(len(all)), in(found, half), in(found, most), in(again, half), in(again, most), fmt.Sprintf("%.3f", lost))
}
