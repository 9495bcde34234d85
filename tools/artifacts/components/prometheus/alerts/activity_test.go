// SPDX-License-Identifier: Apache-2.0

package alerts

import (
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/promql"
	"sigs.k8s.io/yaml"
)

// questionOfActivity is the example of docs/configuration.md, as the controller asks it about two pods.
func questionOfActivity(t *testing.T) string {
	t.Helper()
	_, section, _ := strings.Cut(read(t, root+"docs/configuration.md"), "### deviceActivity\n")
	_, section, _ = strings.Cut(section, "```yaml\n")
	example, _, _ := strings.Cut(section, "```")
	var file struct {
		AppWrapper struct {
			DeviceActivity struct{ Query string }
		}
	}
	if err := yaml.Unmarshal([]byte(example), &file); err != nil || file.AppWrapper.DeviceActivity.Query == "" {
		t.Fatalf("docs/configuration.md has no query: %v", err)
	}
	return strings.NewReplacer("$namespace", "team", "$pods", "train-0|train-1").Replace(file.AppWrapper.DeviceActivity.Query)
}

// gpu has what dcgm-exporter says of a GPU of a pod, from minute to minute; no series of what is empty.
func gpu(pod, uuid, utilisation, watts, memory string) string {
	labels := `{namespace="team",pod="` + pod + `",UUID="` + uuid + `",modelName="NVIDIA H100"} `
	var all []string
	for _, s := range [][2]string{{"DCGM_FI_DEV_GPU_UTIL", utilisation}, {"DCGM_FI_DEV_POWER_USAGE", watts}, {"DCGM_FI_PROF_DRAM_ACTIVE", memory}} {
		if s[1] != "" {
			all = append(all, s[0]+labels+s[1])
		}
	}
	return strings.Join(all, "\n")
}

// The example tells a hang, at 100 % utilisation, from work. The figures were chosen for this test.
func TestTheExampleTellsAHangFromWork(t *testing.T) {
	busy := gpu("train-0", "a", "97x15", "610x15", "0.4x15")
	for sentence, tc := range map[string]struct {
		series, says string
	}{
		"a job that trains":                   {busy, "computes"},
		"one that hangs at full utilisation":  {gpu("train-0", "a", "100x15", "130x15", "0.001x15"), "rests"},
		"one that is idle":                    {gpu("train-0", "a", "0x15", "70x15", "0x15"), "rests"},
		"one that waits for memory":           {gpu("train-0", "a", "60x15", "190x15", "0.3x15"), "computes"},
		"one of its GPUs trains":              {busy + "\n" + gpu("train-0", "b", "100x15", "130x15", "0x15"), "computes"},
		"one hangs, and another is warm":      {gpu("train-0", "a", "100x15", "130x15", "0x15") + "\n" + gpu("train-0", "b", "0x15", "400x15", "0x15"), "rests"},
		"another pod of it trains":            {gpu("train-0", "a", "100x15", "130x15", "0x15") + "\n" + gpu("train-1", "b", "97x15", "610x15", "0.4x15"), "computes"},
		"a pod of another job trains":         {gpu("train-10", "a", "97x15", "610x15", "0.4x15"), ""},
		"a pod of another team trains":        {strings.ReplaceAll(busy, `"team"`, `"red"`), ""},
		"memory is not measured":              {gpu("train-0", "a", "97x15", "610x15", ""), "computes"},
		"nor is power":                        {gpu("train-0", "a", "97x15", "", ""), ""},
		"it computed until five minutes ago":  {gpu("train-0", "a", "97x10 100x5", "610x10 130x5", "0.4x10 0.001x5"), "rests"},
		"it computes, and sometimes it waits": {gpu("train-0", "a", "97x14 0", "610x14 300", "0.4x14 0"), "computes"},
	} {
		t.Run(sentence, func(t *testing.T) {
			if got := said(evaluated(t, questionOfActivity(t), tc.series)); got != tc.says {
				t.Errorf("it says %q, want %q", got, tc.says)
			}
		})
	}
}

// said is how the controller understands an answer.
func said(series promql.Vector) string {
	switch {
	case len(series) == 0:
		return ""
	case slices.ContainsFunc(series, func(s promql.Sample) bool { return s.F > 0 }):
		return "computes"
	}
	return "rests"
}
