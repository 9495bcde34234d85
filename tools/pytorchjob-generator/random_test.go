// SPDX-License-Identifier: Apache-2.0

package generator_test

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"github.com/mlbatch/mlbatch/test/sameseed"
	generator "github.com/mlbatch/mlbatch/tools/pytorchjob-generator"
)

func TestMain(m *testing.M) { os.Exit(sameseed.Run(m)) }

// Any valid settings render an object that the API server accepts, with the strings that
// the author wrote.
func TestValidSettingsRenderJobs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		settings := right(t)
		j := rendered(t, settings)
		container := j.pods[0].Spec.Containers[0]
		for _, wanted := range list(settings["environmentVariables"]) {
			at := slices.IndexFunc(container.Env, func(v corev1.EnvVar) bool { return v.Name == wanted["name"] })
			if at < 0 || container.Env[at].Value != wanted["value"] {
				t.Fatalf("variable %q is not %q", wanted["name"], wanted["value"])
			}
		}
		for _, command := range settings["setupCommands"].([]any) {
			if want := strings.TrimSuffix(strings.ReplaceAll(command.(string), "\r\n", "\n"), "\n"); !strings.Contains(j.script(), want) {
				t.Fatalf("the script lacks %q: %q", want, j.script())
			}
		}
	})
}

// Any settings are rejected with a one-line error, or render such an object.
func TestAnySettingsRenderJobsOrFailWithASentence(t *testing.T) {
	known := slices.Sorted(maps.Keys(settings(t, "chart/values.yaml")))
	rapid.Check(t, func(t *rapid.T) {
		all := right(t)
		for _, value := range rapid.SliceOfN(rapid.SampledFrom(known), 1, 4).Draw(t, "values") {
			all[value] = anything(t, 0)
		}
		if _, err := generator.Render("0.0.1", all); err != nil {
			if strings.Contains(err.Error(), "template:") || strings.Contains(err.Error(), "nil pointer") {
				t.Fatalf("this is not a sentence: %v", err)
			}
			return
		}
		rendered(t, all)
	})
}

var (
	text    = rapid.String()
	name    = rapid.StringMatching(`[a-z]([-a-z0-9]{0,8}[a-z0-9])?`)
	label   = rapid.StringMatching(`([A-Za-z0-9]([-A-Za-z0-9_.]{0,20}[A-Za-z0-9])?)?`)
	amount  = rapid.StringMatching(`[1-9][0-9]{0,3}(\.[0-9]{1,3})?(|m|k|M|G|Ki|Mi|Gi|Ti|e3)`)
	period  = rapid.StringMatching(`([0-9]{1,2}d)?[0-9]{1,3}(\.[0-9])?(s|m|h)`)
	lines   = rapid.StringMatching("[ -~\\t\\n\\r\u0080-\u00a5\u2020-\u2030\ufeff]{0,30}")
	trivial = rapid.SampledFrom([]any{nil, true, false, 0, 1, -1, 1.5, 1e21, "", "0", "true", "null", "~", "7d", "1Gi", "a b", "ü\n", "- a", "{{ 1 }}", "a: b", "#"})
)

// right returns valid settings.
func right(t *rapid.T) map[string]any {
	all := map[string]any{
		"jobName": name.Draw(t, "jobName"), "containerImage": "registry.example.com/" + name.Draw(t, "image"),
		"numPods": rapid.IntRange(2, 50).Draw(t, "numPods"), "setupCommands": []any{},
	}
	values := map[string]func() any{
		"backend":            func() any { return rapid.SampledFrom([]any{"pytorchjob", "jobset", nil}).Draw(t, "backend") },
		"podGroup":           func() any { return rapid.Bool().Draw(t, "podGroup") },
		"numGpusPerPod":      func() any { return rapid.IntRange(0, 8).Draw(t, "gpus") },
		"numRoceGdr":         func() any { return rapid.IntRange(0, 2).Draw(t, "rdma") },
		"numCpusPerPod":      func() any { return amount.Draw(t, "cpus") },
		"totalMemoryPerPod":  func() any { return amount.Draw(t, "memory") },
		"emitZeroResources":  func() any { return rapid.Bool().Draw(t, "zero") },
		"schedulerName":      func() any { return rapid.SampledFrom([]any{"sakkara", "volcano", nil}).Draw(t, "scheduler") },
		"setupCommands":      func() any { return some(t, func() any { return lines.Draw(t, "command") }) },
		"mainProgram":        func() any { return lines.Draw(t, "program") },
		"successTTLDuration": func() any { return period.Draw(t, "ttl") },
		"topology": func() any {
			return map[string]any{rapid.SampledFrom([]string{"required", "preferred"}).Draw(t, "topology"): "rack"}
		},
		"nodeSelector":          func() any { return map[string]any{name.Draw(t, "label"): label.Draw(t, "value")} },
		"mountNVMe":             func() any { return map[string]any{"storage": amount.Draw(t, "storage")} },
		"disableSharedMemory":   func() any { return rapid.Bool().Draw(t, "shared") },
		"topologyFileConfigMap": func() any { return name.Draw(t, "topologyFile") },
		"restartPolicy":         func() any { return rapid.SampledFrom([]any{"Never", "OnFailure", nil}).Draw(t, "restart") },
		"customLabels":          func() any { return numbered(t, "key", func() any { return label.Draw(t, "value") }) },
		"environmentVariables":  func() any { return numbered(t, "name", func() any { return text.Draw(t, "value") }) },
		"initContainers": func() any {
			return []any{map[string]any{"name": "first", "image": "a", "command": some(t, func() any { return text.Draw(t, "word") })}}
		},
	}
	for _, value := range slices.Sorted(maps.Keys(values)) { // the same order in each run
		if rapid.Bool().Draw(t, "has "+value) {
			all[value] = values[value]()
		}
	}
	return all
}

// some returns one to four drawn values.
func some(t *rapid.T, draw func() any) []any {
	all := []any{draw()}
	for range rapid.IntRange(0, 3).Draw(t, "more") {
		all = append(all, draw())
	}
	return all
}

// numbered returns entries with distinct keys and drawn values.
func numbered(t *rapid.T, key string, draw func() any) []any {
	all := some(t, draw)
	for i, value := range all {
		all[i] = map[string]any{key: fmt.Sprintf("%s_%d", strings.ToUpper(name.Draw(t, "name")), i), "value": value}
	}
	return all
}

// anything returns any YAML value.
func anything(t *rapid.T, depth int) any {
	sort := rapid.IntRange(0, 5).Draw(t, "sort")
	switch {
	case sort == 0 && depth < 3:
		return some(t, func() any { return anything(t, depth+1) })
	case sort == 1 && depth < 3:
		keys := []string{"name", "key", "value", "mountPath", "emptyDir", "secret", "storage", "claimName", "image", "command", "required", "gpu", "configMapRef", "operator"}
		object := map[string]any{}
		for _, key := range rapid.SliceOfN(rapid.SampledFrom(keys), 0, 4).Draw(t, "keys") {
			object[key] = anything(t, depth+1)
		}
		return object
	case sort == 2:
		return text.Draw(t, "text")
	case sort == 3:
		return name.Draw(t, "name")
	}
	return trivial.Draw(t, "trivial")
}

// list returns a list of objects, or nil.
func list(of any) []map[string]any {
	all, _ := of.([]any)
	var objects []map[string]any
	for _, o := range all {
		objects = append(objects, o.(map[string]any))
	}
	return objects
}
