// SPDX-License-Identifier: Apache-2.0

package charts_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chartutil"

	"github.com/mlbatch/mlbatch/tools/artifacts/charts/packaging"
)

// ownCharts are the charts whose values are defined in this repository. The generator has
// its own tests.
var ownCharts = []string{"mlbatch", "appwrapper", "teams", "coscheduler", "training-operator", "kuberay-operator", "codeflare"}

// packaged returns the files of one chart, even if it exists only inside the umbrella.
func packaged(t *testing.T, name string) packaging.Chart {
	t.Helper()
	if !slices.Contains(thinCharts, name) {
		return must(must(bundle())(t).Chart(name))(t)
	}
	umbrella := must(must(bundle())(t).Chart("mlbatch"))(t)
	part := packaging.Chart{Name: name, Files: map[string][]byte{}}
	for file, text := range umbrella.Files {
		if inside, ok := strings.CutPrefix(file, "charts/"+name+"/"); ok {
			part.Files[inside] = text
		}
	}
	return part
}

// single is one chart as Helm loads it.
func single(t *testing.T, name string) *chart.Chart {
	t.Helper()
	return must(packaged(t, name).Load())(t)
}

// path is the path of a value: keys, and indexes of lists.
type path []any

func (p path) String() string {
	var text strings.Builder
	for _, step := range p {
		fmt.Fprintf(&text, "/%v", step)
	}
	return text.String()
}

// each visits every value, and each section before its content.
func each(at path, value any, visit func(path, any)) {
	visit(at, value)
	switch v := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			each(append(slices.Clone(at), key), v[key], visit)
		}
	case []any:
		for i, item := range v {
			each(append(slices.Clone(at), i), item, visit)
		}
	}
}

// with returns a copy of the values with one of them replaced. nil means that the user set
// the value to null.
func with(value any, at path, to any) any {
	if len(at) == 0 {
		return to
	}
	switch v := value.(type) {
	case map[string]any:
		clone := maps.Clone(v)
		clone[at[0].(string)] = with(v[at[0].(string)], at[1:], to)
		return clone
	case []any:
		clone := slices.Clone(v)
		clone[at[0].(int)] = with(v[at[0].(int)], at[1:], to)
		return clone
	}
	return map[string]any{at[0].(string): with(nil, at[1:], to)} // a section that does not exist yet
}

// anyKey reports whether the keys of a section are a user's own names, such as labels, or
// belong to another chart.
func anyKey(chart string, p path) bool {
	if len(p) == 0 {
		return false
	}
	if chart == "mlbatch" && !slices.Contains([]any{"priorities", "roles", "policies", "networkPolicy"}, p[0]) {
		return len(p) > 1 || p[0] == "global" // belongs to a part, whose own chart checks it, or to all charts
	}
	names := []any{
		"nodeSelector", "nodeLabels", "labels", "annotations", "podAnnotations", "podLabels", "matchLabels", "requests", "limits", "capacity", "quota",
		"default", "defaultRequest", "max", "min", "resourceTaints", "labelSelector", "env", "capabilities",
		"seccompProfile", "topologySpreadConstraints", "global", "sizes", "pluginConfig",
	}
	for i, step := range p {
		switch {
		case step == "quota": // flavors and resources are names; the limits of a resource are not
			return len(p)-i < 3
		case step == "limits" && chart == "teams": // the limits of a LimitRange
		case slices.Contains(names, step):
			return true
		}
	}
	return false
}

// examples are the default values, alone and combined with the values of each golden file.
func examples(t *testing.T, name string) map[string]map[string]any {
	t.Helper()
	defaults := single(t, name).Values
	all := map[string]map[string]any{"the defaults": defaults}
	for _, file := range must(filepath.Glob(filepath.Join(ours[name], "*.in.yaml")))(t) {
		all[filepath.Base(file)] = chartutil.CoalesceTables(values(t, must(os.ReadFile(file))(t)), single(t, name).Values)
	}
	return all
}

func TestMisspeltKeysAreRefusedAtEveryLevel(t *testing.T) {
	for _, name := range ownCharts {
		t.Run(name, func(t *testing.T) {
			schema, tried := single(t, name).Schema, 0
			for example, in := range examples(t, name) {
				each(nil, in, func(at path, value any) {
					if _, section := value.(map[string]any); !section || anyKey(name, at) {
						return
					}
					tried++
					misspelt := with(in, append(slices.Clone(at), "misspelt"), 1).(map[string]any)
					err := chartutil.ValidateAgainstSingleSchema(misspelt, schema)
					if err == nil || !strings.Contains(err.Error(), "additional properties 'misspelt' not allowed") {
						t.Errorf("%s: a misspelt key at '%s' gets: %v (if users choose the keys, add the section to anyKey)", example, at, err)
					}
				})
			}
			t.Logf("%d misspelt keys", tried)
		})
	}
}

// Upstream charts have no schema; packaging generates one.
func TestMisspeltKeysOfUpstreamChartsAreRefused(t *testing.T) {
	seen, open := 0, map[string]bool{}
	for _, part := range load(t, "mlbatch").Dependencies() {
		if !slices.Contains([]string{"kueue", "jobset", "leaderworkerset"}, part.Name()) {
			continue
		}
		seen++
		each(nil, part.Values, func(at path, value any) {
			_, section := value.(map[string]any)
			if !section || slices.ContainsFunc(at, func(step any) bool { return open[fmt.Sprint(step)] }) || isItem(at) {
				return
			}
			misspelt := with(part.Values, append(slices.Clone(at), "misspelt"), 1).(map[string]any)
			if err := chartutil.ValidateAgainstSingleSchema(misspelt, part.Schema); err == nil {
				open[fmt.Sprint(append(path{part.Name()}, at...)[len(at)])] = true
			}
		})
	}
	if seen != 3 {
		t.Errorf("%d of 3 parts were tested", seen)
	}
	// The keys of these sections are a user's own names, or Kubernetes defines them.
	want := []string{
		"affinity", "annotations", "commonLabels", "containerSecurityContext", "gangSchedulingManagement", "issuerRef", "labels", "nodeSelector",
		"podAnnotations", "podSecurityContext", "resources", "securityContext", "strategy", "tlsConfig",
	}
	if diff := cmp.Diff(want, slices.Sorted(maps.Keys(open))); diff != "" {
		t.Errorf("sections that may have any keys (-want +got)\n%s", diff)
	}
}

// null removes a value, even one that a template needs. The error must be a sentence.
func TestNullValuesRenderOrFailWithASentence(t *testing.T) {
	for _, name := range ownCharts {
		t.Run(name, func(t *testing.T) {
			refused, tried := 0, 0
			each(nil, single(t, name).Values, func(at path, _ any) {
				if len(at) == 0 || isItem(at) || isPart(name, at) {
					return
				}
				tried++
				in := with(map[string]any{}, at, nil).(map[string]any)
				if name == "mlbatch" && at[0] == "kueue" && len(at) > 1 {
					in = alone("kueue", in["kueue"].(map[string]any))
				}
				_, err := packaging.Render(t.Context(), single(t, name), name, namespace, "v1.34.0", in)
				if err == nil {
					return
				}
				refused++
				if text := err.Error(); !strings.Contains(text, "values don't meet the specifications") && !strings.Contains(text, "): "+name+": ") {
					t.Errorf("%s: null fails with: %v", at, err)
				}
			})
			t.Logf("%d values are null, %d of them are refused", tried, refused)
		})
	}
}

// isItem reports whether a value is in a list, where null is just another item.
func isItem(p path) bool {
	return slices.ContainsFunc(p, func(step any) bool { _, index := step.(int); return index })
}

// isPart reports whether a value of the umbrella chart belongs to one of its own parts,
// which is tested separately.
func isPart(chart string, p path) bool {
	return chart == "mlbatch" && len(p) > 2 && p[0] != "kueue"
}

// explained reports whether Kubernetes, Kueue, or the API of Runs, defines and documents the key.
func explained(p path) bool {
	for _, key := range []any{"resources", "image", "securityContext", "sizes", "configuration"} {
		if i := slices.Index(p, key); i >= 0 && i < len(p)-1 {
			return true
		}
	}
	return false
}

func TestEveryValueHasAComment(t *testing.T) {
	for _, name := range ownCharts {
		t.Run(name, func(t *testing.T) {
			var document yaml.Node
			if err := yaml.Unmarshal(packaged(t, name).Files["values.yaml"], &document); err != nil {
				t.Fatal(err)
			}
			undocumented(t, nil, document.Content[0])
		})
	}
}

func undocumented(t *testing.T, at path, node *yaml.Node) {
	t.Helper()
	if node.Kind != yaml.MappingNode {
		return
	}
	for i := 0; i < len(node.Content); i += 2 {
		key, here := node.Content[i], append(slices.Clone(at), node.Content[i].Value)
		if key.HeadComment == "" && !explained(here) {
			t.Errorf("%s has no comment above it", here)
		}
		undocumented(t, here, node.Content[i+1])
	}
}
