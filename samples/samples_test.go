// SPDX-License-Identifier: Apache-2.0

// Package samples_test checks that admission accepts the samples.
package samples_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/mlbatch/mlbatch/controller/admissionrules"
	"github.com/mlbatch/mlbatch/controller/api/codeflare/v1alpha1"
	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
)

func TestSamplesAreAdmitted(t *testing.T) {
	files, err := filepath.Glob("*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("there are no samples: %v", err)
	}
	for _, file := range files {
		t.Run(file, func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var aw v1beta2.AppWrapper
			if err := yaml.UnmarshalStrict(text, &aw); err != nil {
				t.Fatal(err)
			}
			if problems := admissionrules.ValidateCreate(&aw, admissionrules.DefaultLimits); len(problems) > 0 {
				t.Errorf("admission refuses it: %v", problems.ToAggregate())
			}
			if warnings := admissionrules.WarningsOnCreate(&aw); len(warnings) > 0 {
				t.Errorf("admission warns of it: %q", warnings)
			}
			if aw.Labels["kueue.x-k8s.io/queue-name"] == "" {
				t.Error("it names no queue")
			}
		})
	}
}

// Each record goes the way of a Run: it is read, gets its labels, and is written as the Run's.
func TestFluentBitCollectsTheLogsOfRuns(t *testing.T) {
	text, err := os.ReadFile("fluent-bit/runs.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Pipeline struct {
			Inputs  []struct{ Name, Path, Tag string }
			Filters []map[string]any
			Outputs []struct{ Name, Match string }
		}
	}
	if err := yaml.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	p := file.Pipeline
	if len(p.Inputs) != 1 || p.Inputs[0].Path != "/var/log/containers/*.log" || len(p.Filters) != 3 || len(p.Outputs) != 1 {
		t.Fatalf("the pipeline is %+v", p)
	}
	label := "$kubernetes['labels']['" + v1alpha1.RunLabel + "'] "
	for i, want := range []map[string]string{
		{"name": "kubernetes", "labels": "true"}, {"name": "grep", "regex": label + "."},
		{"name": "rewrite_tag", "rule": label + "^(.+)$ run.$kubernetes['namespace_name'].$1 false"},
	} {
		want["match"] = p.Inputs[0].Tag
		for key, value := range want {
			if got := fmt.Sprint(p.Filters[i][key]); got != value {
				t.Errorf("filter %d: %s is %q, not %q", i, key, got, value)
			}
		}
	}
	if out := p.Outputs[0]; out.Match != "run.*" {
		t.Errorf("the output takes %s", out.Match)
	}
}
