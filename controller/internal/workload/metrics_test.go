// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"errors"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/mlbatch/mlbatch/test/metricspage"
)

func TestTheDocumentationHasTheMetrics(t *testing.T) {
	metricspage.Compare(t, "controller/internal/workload", func(registry prometheus.Registerer) error {
		_, err := newMetrics(registry)
		return errors.Join(err, registerMost(registry, nil))
	})
}
