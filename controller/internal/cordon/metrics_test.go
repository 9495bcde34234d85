// SPDX-License-Identifier: Apache-2.0

package cordon

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/mlbatch/mlbatch/test/metricspage"
)

func TestTheDocumentationHasTheMetrics(t *testing.T) {
	metricspage.Compare(t, "controller/internal/cordon", func(registry prometheus.Registerer) error { return registry.Register(newCounts()) })
}
