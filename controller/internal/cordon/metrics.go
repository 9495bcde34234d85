// SPDX-License-Identifier: Apache-2.0

package cordon

import "github.com/prometheus/client_golang/prometheus"

// What became of a node that failed enough unrelated work.
const (
	resultCordoned = "Cordoned"
	resultSpared   = "LimitReached"
)

// newCounts shows both series from the start: Prometheus sees no increase in one that begins at 1.
func newCounts() *prometheus.CounterVec {
	counts := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "mlbatch_node_cordons_total",
		Help: "Number of nodes that were cordoned because they failed unrelated work, or were not because as many are as may be.",
	}, []string{"result"})
	counts.WithLabelValues(resultCordoned)
	counts.WithLabelValues(resultSpared)
	return counts
}
