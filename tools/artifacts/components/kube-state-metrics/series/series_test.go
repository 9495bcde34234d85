// SPDX-License-Identifier: Apache-2.0

// Package series tests our chart's configuration of kube-state-metrics with the real
// kube-state-metrics.
package series

import (
	"bytes"
	"flag"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/kube-state-metrics/v2/pkg/customresourcestate"
	"k8s.io/kube-state-metrics/v2/pkg/metric"
	"sigs.k8s.io/yaml"
)

var update = flag.Bool("update", false, "rewrite the golden file")

const (
	root = "../../../../../"
	// rendered is the rendered chart with all monitoring enabled.
	rendered = root + "charts/testdata/appwrapper/monitoring.out.yaml"
	// phases has an AppWrapper of each phase, as the reconciler leaves it.
	phases = root + "controller/internal/appwrapper/testdata/phases.golden.yaml"
	golden = "testdata/series.golden"
	// document has the table of metrics.
	document = root + "docs/monitoring.md"
)

var documents = regexp.MustCompile(`(?m)^---.*\n`)

// configuration decodes the configuration strictly: kube-state-metrics itself ignores unknown keys.
func configuration(t *testing.T) customresourcestate.Metrics {
	t.Helper()
	for _, document := range documents.Split(read(t, rendered), -1) {
		var object struct {
			Kind     string            `json:"kind"`
			Metadata map[string]any    `json:"metadata"`
			Data     map[string]string `json:"data"`
		}
		if err := yaml.Unmarshal([]byte(document), &object); err != nil {
			t.Fatal(err)
		}
		if object.Kind != "ConfigMap" || object.Metadata["name"] != "appwrapper-ksm" {
			continue
		}
		var file struct {
			Kind                        string `json:"kind"`
			customresourcestate.Metrics `json:",inline"`
		}
		if err := yaml.UnmarshalStrict([]byte(object.Data["config.yaml"]), &file); err != nil {
			t.Fatal(err)
		}
		if file.Kind != "CustomResourceStateMetrics" {
			t.Errorf("its kind is %q", file.Kind)
		}
		return file.Metrics
	}
	t.Fatalf("%s has no ConfigMap appwrapper-ksm", rendered)
	return customresourcestate.Metrics{}
}

// TestSeriesOfAppWrappers compares the series of an AppWrapper in each phase with a golden file.
func TestSeriesOfAppWrappers(t *testing.T) {
	var all bytes.Buffer
	owner, exported := map[string]string{}, map[string]string{}
	for _, resource := range configuration(t).Spec.Resources {
		for i := range resource.Metrics {
			each := &resource.Metrics[i].Each
			each.Type = metric.Type(strings.ToLower(string(each.Type))) // as kube-state-metrics does when it reads the file
		}
		factory, err := customresourcestate.NewCustomResourceMetrics(resource)
		if err != nil {
			t.Fatal(err)
		}
		if factory.Name() != "appwrappers" {
			t.Errorf("it would watch %q", factory.Name())
		}
		for _, aw := range appWrappers(t) {
			fmt.Fprintf(&all, "# %s\n", aw.GetName())
			for _, generator := range factory.MetricFamilyGenerators() {
				family := generator.GenerateFunc(aw)
				for _, m := range family.Metrics {
					exported[generator.Name] = labels(m)
					line := show(generator.Name, m)
					series, _, _ := strings.Cut(line, "} ")
					if other, taken := owner[series]; taken {
						t.Errorf("AppWrappers %s and %s have the same series %s}", other, aw.GetName(), series)
					}
					owner[series] = aw.GetName()
					if m.Value != 0 {
						all.WriteString(line)
					}
				}
			}
		}
	}
	compare(t, all.Bytes())
	if listed := documented(t); !maps.Equal(listed, exported) {
		t.Errorf("docs/monitoring.md lists %v, exported are %v", listed, exported)
	}
}

var row = regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\| [a-z]+ \\| ([a-z_, ]*) \\|")

// documented returns the labels of each metric in the documentation, in alphabetical order.
func documented(t *testing.T) map[string]string {
	t.Helper()
	_, table, _ := strings.Cut(read(t, document), "<!-- kube-state-metrics -->")
	table, _, _ = strings.Cut(table, "<!-- end of kube-state-metrics -->")
	all := map[string]string{}
	for _, found := range row.FindAllStringSubmatch(table, -1) {
		keys := strings.Split(found[2], ", ")
		slices.Sort(keys)
		all[found[1]] = strings.Join(keys, ", ")
	}
	return all
}

// labels returns the labels of a metric, except those that are equal for all AppWrappers: group,
// version and kind.
func labels(m *metric.Metric) string {
	var keys []string
	for _, key := range m.LabelKeys {
		if !strings.HasPrefix(key, "customresource_") {
			keys = append(keys, key)
		}
	}
	return strings.Join(keys, ", ")
}

func appWrappers(t *testing.T) []*unstructured.Unstructured {
	t.Helper()
	var all []*unstructured.Unstructured
	for _, document := range documents.Split(read(t, phases), -1)[1:] {
		encoded, err := yaml.YAMLToJSON([]byte(document))
		if err != nil {
			t.Fatal(err)
		}
		aw := &unstructured.Unstructured{}
		if err := aw.UnmarshalJSON(encoded); err != nil {
			t.Fatal(err)
		}
		all = append(all, aw)
	}
	return all
}

func show(name string, m *metric.Metric) string {
	var labels []string
	for i, key := range m.LabelKeys {
		if !strings.HasPrefix(key, "customresource_") {
			labels = append(labels, fmt.Sprintf("%s=%q", key, m.LabelValues[i]))
		}
	}
	return fmt.Sprintf("%s{%s} %v\n", name, strings.Join(labels, ","), m.Value)
}

func compare(t *testing.T, got []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(golden, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if want := read(t, golden); want != string(got) {
		t.Errorf("%s differs; got\n%s", golden, got)
	}
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
