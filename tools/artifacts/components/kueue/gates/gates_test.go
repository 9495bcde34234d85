// SPDX-License-Identifier: Apache-2.0

// Package gates_test compares what the chart mlbatch says of Kueue's feature gates with what Kueue itself says when it
// starts.
package gates_test

import (
	"maps"
	"os"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"sigs.k8s.io/kueue/pkg/config"
	"sigs.k8s.io/yaml"
)

// table is what the chart knows.
type table struct {
	FeatureGates map[string]any
	Requires     map[string][]string
	OffByDefault []string
}

// Kueue starts with a feature gate and those that it requires, and without one of them it does not.
func TestWhatFeatureGatesRequire(t *testing.T) {
	chart := table{}
	text, err := os.ReadFile("../../../../../charts/mlbatch/files/kueue.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(text, &chart); err != nil {
		t.Fatal(err)
	}
	defaults := unlocked(chart)
	for _, name := range slices.Sorted(maps.Keys(defaults)) {
		required := chart.Requires[name]
		starts(t, defaults, true, append(slices.Clone(required), name)...)
		for i := range required {
			starts(t, defaults, false, append(slices.Delete(slices.Clone(required), i, i+1), name)...)
		}
	}
	named := slices.Concat(slices.Collect(maps.Keys(chart.Requires)), slices.Concat(slices.Collect(maps.Values(chart.Requires))...))
	slices.Sort(named)
	off := slices.DeleteFunc(slices.Compact(named), func(name string) bool { return defaults[name] })
	if diff := cmp.Diff(off, chart.OffByDefault); diff != "" {
		t.Errorf("other feature gates are off by default (-want +got)\n%s", diff)
	}
}

// unlocked are the feature gates of Kueue that can be set, as they are by default.
func unlocked(chart table) map[string]bool {
	gates := map[string]bool{}
	for name, spec := range utilfeature.DefaultMutableFeatureGate.GetAll() {
		_, known := chart.FeatureGates[string(name)]
		if known && !spec.LockToDefault && name != "AllAlpha" && name != "AllBeta" {
			gates[string(name)] = spec.Default
		}
	}
	return gates
}

// starts fails unless Kueue starts, or does not, with these feature gates, and no others that can be off.
func starts(t *testing.T, all map[string]bool, want bool, on ...string) {
	t.Helper()
	gates := map[string]bool{}
	for name := range all {
		gates[name] = slices.Contains(on, name)
	}
	if err := config.LoadAndValidateFeatureGates("", gates).ToAggregate(); (err == nil) != want {
		t.Errorf("with %q alone: %v", on, err)
	}
}
