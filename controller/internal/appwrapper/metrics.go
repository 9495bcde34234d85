// SPDX-License-Identifier: Apache-2.0

package appwrapper

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
)

// metrics count what has happened, once it has been saved.
type metrics struct {
	phases    *prometheus.CounterVec
	unhealthy *prometheus.CounterVec
	refusals  *prometheus.CounterVec
}

func newMetrics(registry prometheus.Registerer) (*metrics, error) {
	m := &metrics{
		phases: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "appwrapper_phase_total",
			Help: "Number of times that an AppWrapper entered a phase.",
		}, []string{"namespace", "phase"}),
		unhealthy: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "appwrapper_unhealthy_total",
			Help: "Number of times that an AppWrapper was reset or failed, by cause.",
		}, []string{"cause", "phase"}),
		refusals: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "appwrapper_create_refusals_total",
			Help: "Number of times that a component could not be created, by cause.",
		}, []string{"cause"}),
	}
	for _, c := range []prometheus.Collector{m.phases, m.unhealthy, m.refusals} {
		if err := registry.Register(c); err != nil {
			return nil, err
		}
	}
	return m, nil
}

func (m *metrics) entered(namespace string, phase v1beta2.AppWrapperPhase) {
	m.phases.WithLabelValues(namespace, string(phase)).Inc()
}

func (m *metrics) failed(cause string, phase v1beta2.AppWrapperPhase) {
	m.unhealthy.WithLabelValues(cause, string(phase)).Inc()
}

func (m *metrics) refused(r *refusal) {
	m.refusals.WithLabelValues(r.cause).Inc()
}
