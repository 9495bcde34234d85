// SPDX-License-Identifier: Apache-2.0

package watchable

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"
)

// metric shows nothing until the first look: replicas that do not lead never look.
type metric struct{ *prometheus.GaugeVec }

// newMetric registers the metric, or returns the one that another part has registered.
func newMetric(registry prometheus.Registerer) (metric, error) {
	waiting := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "mlbatch_part_waiting",
		Help: "Whether a part of the controller still waits until what it watches is served and may be watched: 1 or 0.",
	}, []string{"part"})
	err := registry.Register(waiting)
	if before, is := errors.AsType[prometheus.AlreadyRegisteredError](err); is {
		return metric{before.ExistingCollector.(*prometheus.GaugeVec)}, nil
	}
	return metric{waiting}, err
}

// of returns the function that a part calls.
func (m metric) of(part string) func(waits bool) {
	return func(waits bool) {
		value := 0.0
		if waits {
			value = 1
		}
		m.WithLabelValues(part).Set(value)
	}
}
