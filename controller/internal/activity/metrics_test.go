// SPDX-License-Identifier: Apache-2.0

package activity

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/mlbatch/mlbatch/test/metricspage"
)

func TestTheDocumentationHasTheMetrics(t *testing.T) {
	metricspage.Compare(t, "controller/internal/activity", func(registry prometheus.Registerer) error { return registry.Register(newAnswered()) })
}
