// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/mlbatch/mlbatch/controller/internal/preemptionpause"
)

// What a pause lasts until.
const (
	untilTime      = "Time"
	untilPreemptor = "PreemptorEnded"
)

func untilOf(d preemptionpause.Decision) string {
	if d.Held {
		return untilPreemptor
	}
	return untilTime
}

// newMetrics counts pauses, once they have been written. Kueue counts preemptions.
func newMetrics(registry prometheus.Registerer) (*prometheus.CounterVec, error) {
	pauses := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "mlbatch_preemption_pauses_total",
		Help: "Number of pauses of work that was preempted again and again: for a time, or until the work that preempted it has ended.",
	}, []string{"until"})
	for _, until := range []string{untilTime, untilPreemptor} { // Prometheus sees no increase in a series that begins at 1
		pauses.WithLabelValues(until)
	}
	return pauses, registry.Register(pauses)
}
