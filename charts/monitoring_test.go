// SPDX-License-Identifier: Apache-2.0

package charts_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apiserver/pkg/admission"
	webhooks "k8s.io/apiserver/pkg/admission/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
	_ "sigs.k8s.io/controller-runtime/pkg/builder" // registers the metrics of controllers and webhooks
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	kueuemetrics "sigs.k8s.io/kueue/pkg/metrics"
	"sigs.k8s.io/yaml"
)

var monitored = map[string]any{"monitoring": map[string]any{
	"serviceMonitor": map[string]any{"enabled": true}, "alerts": map[string]any{"enabled": true},
	"dashboard": map[string]any{"enabled": true}, "kubeStateMetrics": map[string]any{"enabled": true},
}}

func document(t *testing.T, name string) string {
	t.Helper()
	return string(must(os.ReadFile(filepath.Join("..", "docs", name)))(t))
}

var chapter = regexp.MustCompile(`(?m)^## (\w+)$`)

func TestEveryAlertHasARunbook(t *testing.T) {
	rendered, err := render(t, "mlbatch", map[string]any{"appwrapper": monitored})
	if err != nil {
		t.Fatal(err)
	}
	var rule struct {
		Spec struct {
			Groups []struct {
				Rules []struct {
					Alert       string
					Annotations map[string]string
				}
			}
		}
	}
	for _, text := range strings.Split(rendered.Manifest, "\n---\n") {
		if parse(t, text).Kind == "PrometheusRule" {
			if err := yaml.Unmarshal([]byte(text), &rule); err != nil {
				t.Fatal(err)
			}
		}
	}
	var alerts, chapters []string
	for _, group := range rule.Spec.Groups {
		for _, r := range group.Rules {
			alerts = append(alerts, r.Alert)
			want := "https://" + must(versions())(t).Module + "/blob/main/docs/runbooks.md#" + strings.ToLower(r.Alert)
			if got := r.Annotations["runbook_url"]; got != want {
				t.Errorf("%s links to %s, want %s", r.Alert, got, want)
			}
		}
	}
	for _, found := range chapter.FindAllStringSubmatch(document(t, "runbooks.md"), -1) {
		chapters = append(chapters, found[1])
	}
	slices.Sort(alerts)
	slices.Sort(chapters)
	if len(alerts) == 0 || !slices.Equal(alerts, chapters) {
		t.Errorf("the alerts are %q, but docs/runbooks.md has %q", alerts, chapters)
	}
}

func TestMonitoringIsDisabledByDefault(t *testing.T) {
	rendered, err := render(t, "appwrapper", nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range objects(t, rendered.Manifest) {
		if strings.HasPrefix(o.APIVersion, "monitoring.coreos.com/") || o.Name == "appwrapper-ksm" || o.Name == "appwrapper-dashboard" {
			t.Errorf("%s is rendered", o.id())
		}
	}
}

var metricRow = regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\| [a-z]+ \\| ([a-z_, ]*) \\|")

// TestUpstreamMetricsExist compares a table of docs/monitoring.md with the programs that
// export the metrics.
func TestUpstreamMetricsExist(t *testing.T) {
	theirs := map[string]string{}
	for _, d := range described(t) {
		theirs[d[1]] = strings.ReplaceAll(d[2], ",", ", ")
	}
	for name, labels := range rejections(t) {
		theirs[name] = labels
	}
	_, table, _ := strings.Cut(document(t, "monitoring.md"), "<!-- others -->")
	table, _, _ = strings.Cut(table, "<!-- end of others -->")
	rows := metricRow.FindAllStringSubmatch(table, -1)
	if len(rows) == 0 {
		t.Error("docs/monitoring.md lists no upstream metrics")
	}
	for _, found := range rows {
		if labels, exported := theirs[found[1]]; !exported || labels != found[2] {
			t.Errorf("%s: its labels are %q, the table has %q", found[1], labels, found[2])
		}
	}
}

var description = regexp.MustCompile(`^Desc\{fqName: "([^"]+)".*variableLabels: \{([^}]*)\}`)

// described are the metrics that controller-runtime exports in every program, and those of Kueue
// about preemption.
func described(t *testing.T) [][]string {
	t.Helper()
	registry, ok := ctrlmetrics.Registry.(prometheus.Collector)
	if !ok {
		t.Fatal("controller-runtime's registry cannot list its metrics")
	}
	all := make(chan *prometheus.Desc)
	go func() {
		defer close(all)
		for _, metrics := range []prometheus.Collector{registry, kueuemetrics.EvictedWorkloadsTotal, kueuemetrics.EvictedWorkloadsOnceTotal} {
			metrics.Describe(all)
		}
	}()
	var found [][]string
	for d := range all {
		found = append(found, description.FindStringSubmatch(d.String()))
	}
	return found
}

// rejections are the metrics that an API server exports about a webhook that it cannot call.
func rejections(t *testing.T) map[string]string {
	t.Helper()
	webhooks.Metrics.ObserveWebhookRejection(t.Context(), "mappwrapper.kb.io", "admit", string(admission.Create), webhooks.WebhookRejectionCallingWebhookError, 500)
	families, err := legacyregistry.DefaultGatherer.Gather()
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for _, family := range families {
		labels := map[string]bool{}
		for _, series := range family.GetMetric() {
			for _, label := range series.GetLabel() {
				labels[label.GetName()] = true
			}
			if labels["error_type"] && !strings.Contains(fmt.Sprint(series.GetLabel()), "calling_webhook_error") {
				t.Errorf("%s has another error_type: %v", family.GetName(), series.GetLabel())
			}
		}
		var names []string
		for _, name := range []string{"name", "type", "operation", "error_type", "rejection_code"} {
			if labels[name] {
				names = append(names, name)
			}
		}
		found[family.GetName()] = strings.Join(names, ", ")
	}
	return found
}
