// SPDX-License-Identifier: Apache-2.0

package charts_test

import (
	"cmp"
	"os"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// mistake is a set of values that a chart must refuse.
type mistake struct {
	Values map[string]any `json:"values"`
	// Kubernetes is the version of the cluster; empty means the version of the local cluster.
	Kubernetes string `json:"kubernetes"`
	Says       string `json:"says"`
}

func TestMistakes(t *testing.T) {
	for name, file := range map[string]string{
		"mlbatch":              "testdata/mistakes/mlbatch.yaml",
		"appwrapper":           "testdata/mistakes/appwrapper.yaml",
		"codeflare":            "testdata/mistakes/codeflare.yaml",
		"teams":                "testdata/mistakes/teams.yaml",
		"pytorchjob-generator": "../tools/pytorchjob-generator/testdata/mistakes.yaml",
	} {
		t.Run(name, func(t *testing.T) {
			var rows []mistake
			if err := yaml.UnmarshalStrict(must(os.ReadFile(file))(t), &rows); err != nil {
				t.Fatal(err)
			}
			t.Logf("%d mistakes", len(rows))
			for _, row := range rows {
				t.Run(row.Says, func(t *testing.T) { refuses(t, name, row) })
			}
		})
	}
}

func refuses(t *testing.T, name string, row mistake) {
	t.Helper()
	_, err := renderLight(t, cmp.Or(row.Kubernetes, here(t)), name, row.Values)
	if err == nil {
		t.Fatal("the values are accepted")
	}
	if !strings.Contains(err.Error(), row.Says) {
		t.Errorf("got the error: %v", err)
	}
}
