// SPDX-License-Identifier: Apache-2.0

// Package metricspage compares docs/monitoring.md with the metrics that a package registers.
package metricspage

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/mlbatch/mlbatch/test/golden"
)

// Begin is the line above the table of a package.
func Begin(name string) string {
	return "<!-- metrics: written by go test ./" + name + " -update -->\n"
}

const end = "<!-- end of metrics -->\n"

// Compare fails the test unless the table of a package has exactly the metrics that register
// registers. The package is three folders below the root.
func Compare(t *testing.T, name string, register func(prometheus.Registerer) error) {
	t.Helper()
	golden.Between(t, filepath.Join("..", "..", "..", "docs", "monitoring.md"), Begin(name), end, table(t, register))
}

func table(t *testing.T, register func(prometheus.Registerer) error) string {
	t.Helper()
	seen := &list{Registerer: prometheus.NewRegistry()}
	if err := register(seen); err != nil {
		t.Fatal(err)
	}
	if len(seen.rows) == 0 {
		t.Fatal("no metric was registered")
	}
	return "\n| metric | type | labels | meaning |\n|---|---|---|---|\n" + strings.Join(seen.rows, "") + "\n"
}

// list remembers what is registered, in this order.
type list struct {
	prometheus.Registerer
	rows []string
}

// MustRegister is as Register, and panics.
func (l *list) MustRegister(all ...prometheus.Collector) {
	for _, c := range all {
		if err := l.Register(c); err != nil {
			panic(err)
		}
	}
}

// Register adds the row of the metric.
func (l *list) Register(c prometheus.Collector) error {
	l.rows = append(l.rows, row(c))
	return l.Registerer.Register(c)
}

var described = regexp.MustCompile(`^Desc\{fqName: "([^"]+)", help: "([^"]+)", unit: "[^"]*", constLabels: \{\}, variableLabels: \{([^}]*)\}`)

func row(c prometheus.Collector) string {
	descriptions := make(chan *prometheus.Desc, 1)
	c.Describe(descriptions)
	found := described.FindStringSubmatch((<-descriptions).String())
	return fmt.Sprintf("| `%s` | %s | %s | %s |\n", found[1], kind(c), strings.ReplaceAll(found[3], ",", ", "), found[2])
}

func kind(c prometheus.Collector) string {
	switch c.(type) {
	case *prometheus.CounterVec:
		return "counter"
	case *prometheus.HistogramVec, prometheus.Histogram:
		return "histogram"
	default:
		return "gauge" // a collector of our own, which looks when it is asked
	}
}
