// SPDX-License-Identifier: Apache-2.0

package config

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// rendered are the golden files of the charts that contain our controller.
const rendered = "../../../charts/testdata/*/*.out.yaml"

var documents = regexp.MustCompile(`(?m)^---.*\n`)

// What the charts render is what the controller reads, so a key that only one of
// the two knows is found here and not by a controller that does not start.
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

func configurations(t *testing.T, file string) []string {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, document := range documents.Split(string(data), -1) {
		if !strings.Contains(document, "appwrapper-operator-config") || !strings.Contains(document, "kind: ConfigMap") {
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
