// SPDX-License-Identifier: Apache-2.0

package run

import (
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mlbatch/mlbatch/controller/api/codeflare/v1alpha1"
	"github.com/mlbatch/mlbatch/controller/internal/namespacemetrics"
	"github.com/mlbatch/mlbatch/controller/internal/runlife"
	"github.com/mlbatch/mlbatch/controller/runplan"
)

// metrics count what has happened, once it has been saved.
type metrics struct {
	phases     *prometheus.CounterVec
	refusals   *prometheus.CounterVec
	namespaces *namespacemetrics.Series
}

// refusalReasons are the reasons of Accepted while it is False.
var refusalReasons = []string{
	runplan.ApplicationNotFound, runplan.SizeUnknown, runplan.InputNotFound, runplan.Impossible,
	runlife.Refused, runlife.Forbidden, runlife.NameTaken, runlife.NamespaceNotEnabled,
}

func newMetrics(registry prometheus.Registerer) (*metrics, error) {
	m := &metrics{
		phases: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "codeflare_run_phase_total", Help: "Number of times that a Run entered a phase.",
		}, []string{"namespace", "phase"}),
		refusals: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "codeflare_run_refusals_total", Help: "Number of times that a Run could not be accepted, by the reason of the condition Accepted.",
		}, []string{"reason"}),
	}
	m.namespaces = namespacemetrics.New(func(namespace string) {
		m.phases.DeletePartialMatch(prometheus.Labels{"namespace": namespace})
	})
	for _, c := range []prometheus.Collector{m.phases, m.refusals} {
		if err := registry.Register(c); err != nil {
			return nil, err
		}
	}
	for _, reason := range refusalReasons { // Prometheus sees no increase in a series that begins at 1
		m.refusals.WithLabelValues(reason)
	}
	return m, nil
}

// changed counts what differs from the Run as it was.
func (m *metrics) changed(before *v1alpha1.Run, after v1alpha1.RunStatus) {
	if after.Phase != before.Status.Phase {
		m.namespaces.Counted(before.Namespace)
		m.phases.WithLabelValues(before.Namespace, string(after.Phase)).Inc()
	}
	if reason := refusalOf(after); reason != "" && reason != refusalOf(before.Status) {
		m.refusals.WithLabelValues(reason).Inc()
	}
}

// refusalOf is why a Run is not accepted, empty if it is.
func refusalOf(status v1alpha1.RunStatus) string {
	c := meta.FindStatusCondition(status.Conditions, v1alpha1.Accepted)
	if c == nil || c.Status != metav1.ConditionFalse {
		return ""
	}
	return c.Reason
}
