// SPDX-License-Identifier: Apache-2.0

package alerts

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/promql/parser"
	"sigs.k8s.io/yaml"
)

const (
	root = "../../../../../"
	// manifests is the rendered chart with all monitoring enabled.
	manifests = root + "charts/testdata/appwrapper/monitoring.out.yaml"
	// document lists the metrics. Other tests compare it with the exporters.
	document = root + "docs/monitoring.md"
)

type object struct {
	Kind     string `json:"kind"`
	Metadata struct {
		Name string `json:"name"`
	} `json:"metadata"`
	Spec map[string]any    `json:"spec"`
	Data map[string]string `json:"data"`
}

var documents = regexp.MustCompile(`(?m)^---.*\n`)

func rendered(t *testing.T, kind, name string) object {
	t.Helper()
	for _, text := range documents.Split(read(t, manifests), -1) {
		var o object
		if err := yaml.Unmarshal([]byte(text), &o); err != nil {
			t.Fatal(err)
		}
		if o.Kind == kind && o.Metadata.Name == name {
			return o
		}
	}
	t.Fatalf("%s has no %s %s", manifests, kind, name)
	return object{}
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// The rows of the tables of metrics: name, type, labels, meaning.
var row = regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\| ([a-z]+) \\| ([a-z_, ]*) \\|")

// exported returns the labels of each series of the documented metrics.
func exported(t *testing.T) map[string][]string {
	t.Helper()
	all := map[string][]string{}
	for _, found := range row.FindAllStringSubmatch(read(t, document), -1) {
		name, labels := found[1], strings.Split(found[3], ", ")
		if found[2] != "histogram" {
			all[name] = labels
			continue
		}
		all[name+"_count"], all[name+"_sum"], all[name+"_bucket"] = labels, labels, append([]string{"le"}, labels...)
	}
	return all
}

// byTarget are the labels that Prometheus adds when it scrapes a target.
var byTarget = []string{"job", "pod", "instance"}

func TestTheAlertsAskForWhatThereIs(t *testing.T) {
	for _, rule := range rules(t) {
		asksForWhatThereIs(t, rule.Alert, rule.Expr)
	}
}

func asksForWhatThereIs(t *testing.T, who, query string) {
	t.Helper()
	expression, err := promQL.ParseExpr(query)
	if err != nil {
		t.Errorf("%s: %v", who, err)
		return
	}
	metrics, labels := exported(t), slices.Clone(byTarget)
	parser.Inspect(expression, func(node parser.Node, _ []parser.Node) error {
		selector, is := node.(*parser.VectorSelector)
		if !is {
			return nil
		}
		known, is := metrics[selector.Name]
		if !is {
			t.Errorf("%s: nobody exports %s", who, selector.Name)
		}
		labels = append(labels, known...)
		for _, matcher := range selector.LabelMatchers {
			if matcher.Name != "__name__" && !slices.Contains(known, matcher.Name) && !slices.Contains(byTarget, matcher.Name) {
				t.Errorf("%s: %s has no label %s", who, selector.Name, matcher.Name)
			}
		}
		return nil
	})
	parser.Inspect(expression, func(node parser.Node, _ []parser.Node) error {
		if sum, is := node.(*parser.AggregateExpr); is {
			for _, label := range sum.Grouping {
				if !slices.Contains(labels, label) {
					t.Errorf("%s: nothing has the label %s", who, label)
				}
			}
		}
		return nil
	})
}

type panel struct {
	Title   string `json:"title"`
	Type    string `json:"type"`
	Targets []struct {
		Expr   string `json:"expr"`
		Legend string `json:"legendFormat"`
	} `json:"targets"`
}

// Grafana replaces these variables.
var variables = strings.NewReplacer("$__rate_interval", "5m", "$namespace", "team")

// panels are those of the dashboard.
func panels(t *testing.T) []panel {
	t.Helper()
	var dashboard struct {
		Panels []panel `json:"panels"`
	}
	if err := json.Unmarshal([]byte(rendered(t, "ConfigMap", "appwrapper-dashboard").Data["appwrapper.json"]), &dashboard); err != nil {
		t.Fatal(err)
	}
	return dashboard.Panels
}

func TestTheDashboardAsksForWhatThereIs(t *testing.T) {
	shown := 0
	for _, p := range panels(t) {
		for _, target := range p.Targets {
			shown++
			asksForWhatThereIs(t, p.Title, variables.Replace(target.Expr))
		}
		if p.Type != "row" && len(p.Targets) == 0 {
			t.Errorf("%s shows nothing", p.Title)
		}
	}
	if shown == 0 {
		t.Error("the dashboard shows nothing")
	}
}
