// SPDX-License-Identifier: Apache-2.0

// Package samples_test checks that admission accepts the samples.
package samples_test

import (
	"os"
	"path/filepath"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/mlbatch/mlbatch/controller/admissionrules"
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
