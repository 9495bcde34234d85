// SPDX-License-Identifier: Apache-2.0

package config

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// rendered are the golden files of the charts that contain our controller.
const rendered = "../../../charts/testdata/*/*.out.yaml"

var documents = regexp.MustCompile(`(?m)^---.*\n`)

// The controller reads what the charts render. This test finds a key that only one of them
// knows, before a controller fails to start.
func TestWhatTheChartsRenderIsAccepted(t *testing.T) {
	files, err := filepath.Glob(rendered)
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, file := range files {
		for _, text := range configurations(t, file) {
			found++
			_, notes, err := Parse([]byte(text))
			if err != nil || len(notes) > 0 {
				t.Errorf("%s: notes %q, error %v", filepath.Base(file), notes, err)
			}
		}
	}
	if found == 0 {
		t.Errorf("no configuration in %s", rendered)
	}
}

// The controller of Runs reads what its chart renders.
func TestWhatTheChartOfRunsRendersIsAccepted(t *testing.T) {
	files, err := filepath.Glob("../../../charts/testdata/codeflare/*.out.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no golden files: %v", err)
	}
	for _, file := range files {
		texts := inConfigMap(t, file, "codeflare-config")
		if len(texts) != 1 {
			t.Fatalf("%s has %d configurations", file, len(texts))
		}
		if _, notes, err := ParseRuns([]byte(texts[0])); err != nil || len(notes) > 0 {
			t.Errorf("%s: notes %q, error %v", filepath.Base(file), notes, err)
		}
	}
}

// A job that the generator renders offline must avoid the same nodes as the controller. The
// umbrella chart has the same list.
func TestOneListOfUnhealthyNodes(t *testing.T) {
	text, err := os.ReadFile("../../../tools/pytorchjob-generator/chart/values.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var generator struct {
		UnhealthyNodes map[string][]string `json:"unhealthyNodes"`
	}
	if err := yaml.Unmarshal(text, &generator); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(generator.UnhealthyNodes, avoided(Default())); diff != "" {
		t.Errorf("the controller's default (-generator +controller)\n%s", diff)
	}
	if diff := cmp.Diff(generator.UnhealthyNodes, avoided(umbrellas(t))); diff != "" {
		t.Errorf("the umbrella (-generator +umbrella)\n%s", diff)
	}
}

// Within the platform, the chart repeats the controller's default for other accelerators.
func TestOtherAcceleratorsAreAsUnhealthyAsTheDefaultOnes(t *testing.T) {
	const file = "../../../charts/testdata/appwrapper/other-accelerators.out.yaml"
	texts := configurations(t, file)
	if len(texts) != 1 {
		t.Fatalf("%s has %d configurations", file, len(texts))
	}
	got, _, err := Parse([]byte(texts[0]))
	if err != nil {
		t.Fatal(err)
	}
	want := Default().AppWrapper.Autopilot.ResourceTaints["nvidia.com/gpu"]
	if diff := cmp.Diff(want, got.AppWrapper.Autopilot.ResourceTaints["amd.com/gpu"]); diff != "" {
		t.Errorf("(-default +chart)\n%s", diff)
	}
	if got.AppWrapper.Autopilot.MigrationLimit != 3 {
		t.Error("the other values for Autopilot are lost")
	}
}

// umbrellas returns the controller's configuration in the values of the umbrella chart.
func umbrellas(t *testing.T) Config {
	t.Helper()
	text, err := os.ReadFile("../../../charts/mlbatch/values.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return inValues(t, text)
}

// inValues returns the controller's configuration in values for the umbrella chart.
func inValues(t *testing.T, text []byte) Config {
	t.Helper()
	var values struct {
		AppWrapper struct {
			Config map[string]any `json:"config"`
		} `json:"appwrapper"`
	}
	if err := yaml.Unmarshal(text, &values); err != nil {
		t.Fatal(err)
	}
	if len(values.AppWrapper.Config) == 0 {
		t.Fatal("there is no value appwrapper.config")
	}
	text, err := yaml.Marshal(values.AppWrapper.Config)
	if err != nil {
		t.Fatal(err)
	}
	c, _, err := Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// avoided returns the labels of nodes on which no pod with GPUs may run.
func avoided(c Config) map[string][]string {
	values := map[string][]string{}
	for _, taint := range c.AppWrapper.Autopilot.ResourceTaints["nvidia.com/gpu"] {
		if taint.Effect != corev1.TaintEffectPreferNoSchedule {
			values[taint.Key] = append(values[taint.Key], taint.Value)
		}
	}
	return values
}

func configurations(t *testing.T, file string) []string {
	t.Helper()
	return inConfigMap(t, file, "appwrapper-operator-config")
}

func inConfigMap(t *testing.T, file, name string) []string {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, document := range documents.Split(string(data), -1) {
		if !strings.Contains(document, "\n  name: "+name+"\n") || !strings.Contains(document, "kind: ConfigMap") {
			continue
		}
		var object corev1.ConfigMap
		if err := yaml.Unmarshal([]byte(document), &object); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		all = append(all, object.Data["config.yaml"])
	}
	return all
}
