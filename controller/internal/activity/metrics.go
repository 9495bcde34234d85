// SPDX-License-Identifier: Apache-2.0

package activity

import "github.com/prometheus/client_golang/prometheus"

// newAnswered shows nothing until somebody has asked: replicas that do not lead never do.
func newAnswered() *prometheus.GaugeVec {
	return prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "mlbatch_device_activity_answered",
		Help: "Whether Prometheus answered the latest question of deviceActivity: 1 or 0.",
	}, nil)
}
