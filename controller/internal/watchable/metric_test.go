// SPDX-License-Identifier: Apache-2.0

package watchable

import (
	"maps"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/mlbatch/mlbatch/test/metricspage"
)

func TestTheDocumentationHasTheMetric(t *testing.T) {
	metricspage.Compare(t, "controller/internal/watchable", func(registry prometheus.Registerer) error {
		_, err := newMetric(registry)
		return err
	})
}

func TestAllPartsShareOneMetric(t *testing.T) {
	registry := prometheus.NewRegistry()
	for part, waits := range map[string]bool{"workload": true, "slackqueue": false} {
		m, err := newMetric(registry)
		if err != nil {
			t.Fatal(err)
		}
		m.of(part)(waits)
	}
	families, err := registry.Gather()
	if err != nil || len(families) != 1 {
		t.Fatal(families, err)
	}
	got := map[string]float64{}
	for _, m := range families[0].GetMetric() {
		got[m.GetLabel()[0].GetValue()] = m.GetGauge().GetValue()
	}
	if want := map[string]float64{"workload": 1, "slackqueue": 0}; !maps.Equal(got, want) {
		t.Errorf("the metric is %v, not %v", got, want)
	}
}
