// SPDX-License-Identifier: Apache-2.0

package run

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mlbatch/mlbatch/controller/api/codeflare/v1alpha1"
	"github.com/mlbatch/mlbatch/controller/runplan"
	"github.com/mlbatch/mlbatch/test/metricspage"
)

func TestPhasesAndRefusalsAreCounted(t *testing.T) {
	registry := prometheus.NewRegistry()
	m, err := newMetrics(registry)
	if err != nil {
		t.Fatal(err)
	}
	run := givenRun()
	for _, status := range []v1alpha1.RunStatus{
		refusedFor(runplan.SizeUnknown), refusedFor(runplan.SizeUnknown), refusedFor(runplan.InputNotFound), {Phase: v1alpha1.RunQueued},
	} {
		m.changed(run, status)
		run.Status = status
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			name := family.GetName()
			for _, label := range metric.GetLabel() {
				name += " " + label.GetValue()
			}
			got[name] = metric.GetCounter().GetValue()
		}
	}
	want := map[string]float64{
		"codeflare_run_phase_total blue Pending": 1, "codeflare_run_phase_total blue Queued": 1,
		"codeflare_run_refusals_total SizeUnknown": 1, "codeflare_run_refusals_total InputNotFound": 1,
	}
	for _, reason := range refusalReasons { // they begin at 0
		want["codeflare_run_refusals_total "+reason] += 0
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func refusedFor(reason string) v1alpha1.RunStatus {
	return v1alpha1.RunStatus{Phase: v1alpha1.RunPending, Conditions: []metav1.Condition{{
		Type: v1alpha1.Accepted, Status: metav1.ConditionFalse, Reason: reason,
	}}}
}

func TestTheDocumentationHasTheMetrics(t *testing.T) {
	metricspage.Compare(t, "controller/internal/run", func(registry prometheus.Registerer) error {
		_, err := newMetrics(registry)
		return err
	})
}
