// SPDX-License-Identifier: Apache-2.0

package appwrapper

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/mlbatch/mlbatch/controller/internal/namespacemetrics"
	"github.com/mlbatch/mlbatch/controller/internal/nodehealth"
)

// metrics count what has happened, once it has been saved, and measure it by the times
// in the status: what began under another leader is measured whole. Of every label the
// values are a closed set; but for the namespaces of appwrapper_phase_total, which
// dashboards know from other AppWrapper controllers.
type metrics struct {
	phases      *prometheus.CounterVec
	transitions *prometheus.CounterVec
	inPhase     *prometheus.HistogramVec
	created     prometheus.Histogram
	ready       prometheus.Histogram
	resets      *prometheus.CounterVec
	refusals    *prometheus.CounterVec
	surpluses   *prometheus.CounterVec
	migrations  *prometheus.CounterVec
	suspicions  *prometheus.CounterVec
	usage       *prometheus.CounterVec
	deviceUsage *prometheus.CounterVec
	namespaces  *namespacemetrics.Series
}

// The waits that histograms tell apart, in seconds. The times in a status are whole
// seconds, so shorter ones mean nothing.
var (
	startBuckets = []float64{1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1800}
	phaseBuckets = []float64{1, 5, 15, 60, 300, 900, 3600, 4 * 3600, 12 * 3600, 24 * 3600, 72 * 3600, 168 * 3600}
)

func newMetrics(registry prometheus.Registerer) (*metrics, error) {
	m := &metrics{
		phases: counter("appwrapper_phase_total", "Number of times that an AppWrapper entered a phase.", "namespace", "phase"),
		transitions: counter("appwrapper_transitions_total",
			"Number of moves from one phase to another, by the causes in docs/lifecycle.md.", "from", "to", "cause"),
		inPhase: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "appwrapper_phase_duration_seconds", Help: "How long AppWrappers were in a phase that they have left.", Buckets: phaseBuckets,
		}, []string{"phase"}),
		created: histogram("appwrapper_unsuspend_to_created_seconds",
			"From when the controller saw that quota was given until all components existed; first attempts only."),
		ready: histogram("appwrapper_unsuspend_to_ready_seconds",
			"From when the controller saw that quota was given until enough pods were running; first attempts only."),
		resets: counter("appwrapper_resets_total",
			"Number of times that the components were removed to be tried again, by the reason of the condition Unhealthy.", "cause"),
		refusals: counter("appwrapper_creation_failures_total",
			"Number of times that a component could not be created, by the API server's reason or the controller's own.", "reason"),
		surpluses: counter("appwrapper_surplus_total",
			"Number of times that the pods of an AppWrapper exceeded its pod sets for longer than the failure grace period."),
		migrations: counter("appwrapper_migrations_total",
			"Number of times that an AppWrapper was reset to leave unhealthy nodes, once for each cause in docs/lifecycle.md.", "cause"),
		suspicions: counter("appwrapper_suspect_node_reports_total",
			"Number of times that a node failed one more AppWrapper after it had failed enough others, by the causes in docs/lifecycle.md.", "cause"),
		usage: counter("appwrapper_usage_seconds_total",
			"Seconds for which quota was reserved, by the classes in docs/fault-tolerance.md; those of an attempt once it has ended.", "namespace", "class"),
		deviceUsage: counter("appwrapper_usage_device_seconds_total",
			"The same, times the devices of the AppWrapper. Devices that the configuration does not name are Other.", "namespace", "resource", "class"),
	}
	m.namespaces = namespacemetrics.New(m.forget)
	for _, c := range m.all() {
		if err := registry.Register(c); err != nil {
			return nil, err
		}
	}
	m.beginAtZero()
	return m, nil
}

// forget removes all series of a namespace.
func (m *metrics) forget(namespace string) {
	for _, c := range []*prometheus.CounterVec{m.phases, m.usage, m.deviceUsage} {
		c.DeletePartialMatch(prometheus.Labels{"namespace": namespace})
	}
}

func counter(name, help string, labels ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
}

func histogram(name, help string) prometheus.Histogram {
	return prometheus.NewHistogram(prometheus.HistogramOpts{Name: name, Help: help, Buckets: startBuckets})
}

func (m *metrics) all() []prometheus.Collector {
	return []prometheus.Collector{m.phases, m.transitions, m.inPhase, m.created, m.ready, m.resets, m.refusals, m.surpluses, m.migrations, m.suspicions, m.usage, m.deviceUsage}
}

// beginAtZero shows what alerts ask for before it first happens: Prometheus sees no
// increase in a series that begins at 1.
func (m *metrics) beginAtZero() {
	for _, cause := range append(resetCauses, other) {
		m.resets.WithLabelValues(cause)
	}
	for _, reason := range append(refusalReasons, other) {
		m.refusals.WithLabelValues(reason)
	}
	m.surpluses.WithLabelValues()
	for _, source := range nodehealth.Sources() {
		m.migrations.WithLabelValues(string(source))
	}
	for _, source := range []nodehealth.Source{nodehealth.PodRejected, nodehealth.PodNotStarted} {
		m.suspicions.WithLabelValues(string(source))
	}
}
