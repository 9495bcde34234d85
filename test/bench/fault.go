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
	// Rivals is what followed the same faults where others run the same pods; empty if that was not measured.
	Rivals []RivalFault `json:"rivals,omitempty"`
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
	for _, says := range f.says() {
		t.fault(says, f.of(says))
	}
	all := slices.Clone(f.Results)
	for i := range all {
		all[i].Cause = ""
	}
	t.fault("all", all)
	return t.String()
}

// says are the faults, in the order in which they were measured.
func (f Faults) says() (all []string) {
	for _, r := range f.Results {
		if !slices.Contains(all, r.Says) {
			all = append(all, r.Says)
		}
	}
	return all
}

// of are the results of a fault.
func (f Faults) of(says string) []Fault {
	return slices.DeleteFunc(slices.Clone(f.Results), func(r Fault) bool { return r.Says != says })
}

func (t *table) fault(name string, all []Fault) {
	cause, lost := "", 0.0
	for _, f := range all {
		lost += f.lost() / float64(len(all))
		if f.Cause != "" {
			cause = "`" + f.Cause + "`"
		}
	}
	found, again := happened(all, Fault.found), happened(all, Fault.again)
	t.row(name, cause, fmt.Sprint(len(all)), inSeconds(found, half), inSeconds(found, most), inSeconds(again, half), inSeconds(again, most), fmt.Sprintf("%.3f", lost))
}

func (f Fault) found() time.Duration { return f.Found.Duration }
func (f Fault) again() time.Duration { return f.Again.Duration }

// happened are the times of what has happened.
func happened[T any](all []T, when func(T) time.Duration) (times []time.Duration) {
	for _, a := range all {
		if d := when(a); d > 0 {
			times = append(times, d)
		}
	}
	return times
}

func half(q Quantiles) float64 { return q.P50 }
func most(q Quantiles) float64 { return q.P99 }

// inSeconds is a quantile, or "-" of no times.
func inSeconds(times []time.Duration, quantile func(Quantiles) float64) string {
	if len(times) == 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f", quantile(QuantilesOf(times))/1000)
}
