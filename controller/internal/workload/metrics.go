// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

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

// mostPreempted says of each namespace how often that Workload was preempted that was preempted most.
// A series for each Workload would be too many. Kueue's counters do not tell ten jobs that were
// preempted once from one that was preempted ten times.
type mostPreempted struct {
	cached client.Reader
}

func registerMost(registry prometheus.Registerer, cached client.Reader) error {
	return registry.Register(mostPreempted{cached})
}

var mostPreemptions = prometheus.NewDesc("mlbatch_most_preemptions",
	"Preemptions of the Workload that was preempted most often, of those of the namespace that run or wait.", []string{"namespace"}, nil)

// Describe is of prometheus.Collector.
func (m mostPreempted) Describe(all chan<- *prometheus.Desc) { all <- mostPreemptions }

// scrapeLimit is how long a scrape waits for a cache that is not filled yet.
const scrapeLimit = time.Second

// Collect has nothing of a namespace in which nothing was preempted.
func (m mostPreempted) Collect(all chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), scrapeLimit)
	defer cancel()
	var workloads kueue.WorkloadList
	if err := m.cached.List(ctx, &workloads, client.UnsafeDisableDeepCopy); err != nil {
		return // the next scrape has them
	}
	most := map[string]int32{}
	for i := range workloads.Items {
		w := &workloads.Items[i]
		if n := preemptionpause.Preemptions(w); n > most[w.Namespace] && preemptionpause.Unfinished(w) {
			most[w.Namespace] = n
		}
	}
	for namespace, n := range most {
		all <- prometheus.MustNewConstMetric(mostPreemptions, prometheus.GaugeValue, float64(n), namespace)
	}
}
