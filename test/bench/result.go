// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"maps"
	"slices"
	"time"
)

// Result is one run of a scenario.
type Result struct {
	Scenario string `json:"scenario"`
	Lives    int    `json:"lives"`
	// PerSecond is the lives from creation to success, each second.
	PerSecond float64 `json:"perSecond"`
	// Times of a life: ToRunning and ToSucceeded since its creation, ToGone since its deletion,
	// and ToAgain.
	Times map[string]Quantiles `json:"times"`
	// Requests of a life, by client, and by what is asked.
	Requests map[string]map[string]float64 `json:"requests"`
	// CPU is the processor time of a life, by process, in milliseconds.
	CPU map[string]float64 `json:"cpuMilliseconds"`
	// Memory is the most resident memory during the scenario, by process, in MiB.
	Memory map[string]float64 `json:"memoryMiB,omitempty"`
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
	// ToAgain is from the failure of a pod until the pod of the next attempt runs.
	ToAgain = "to running again"
)

// Quantiles of a time, in milliseconds.
type Quantiles struct {
	P50 float64 `json:"p50"`
	P99 float64 `json:"p99"`
}

// QuantilesOf sorts the times. Of few, the highest quantile is the longest.
func QuantilesOf(times []time.Duration) Quantiles {
	if len(times) == 0 {
		return Quantiles{}
	}
	slices.Sort(times)
	at := func(percent int) float64 {
		return float64(times[(len(times)*percent+99)/100-1]) / float64(time.Millisecond)
	}
	return Quantiles{at(50), at(99)}
}

// Asked is the number of requests of a life that someone sends; what "" is all.
func (r Result) Asked(who, what string) float64 {
	if what != "" {
		return r.Requests[who][what]
	}
	return sum(r.Requests[who])
}

// sum adds in the order of the names, so that it is always the same.
func sum(values map[string]float64) (all float64) {
	for _, name := range slices.Sorted(maps.Keys(values)) {
		all += values[name]
	}
	return all
}
