// SPDX-License-Identifier: Apache-2.0

package charts_test

import (
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// Kueue 0.19.2 has faults in how it counts these kinds (docs/kueue.md, "What later releases mend"). It queues none of
// them, nobody of a team writes Workloads, and no chart creates an AdmissionCheck.
func TestKueueQueuesNothingThatItMiscounts(t *testing.T) {
	rendered := must(render(t, "mlbatch", nil))(t).Manifest
	var configuration struct {
		Integrations struct{ Frameworks []string }
	}
	for _, document := range strings.Split(rendered, "\n---\n") {
		var config struct{ Data map[string]string }
		if parse(t, document).Kind == "ConfigMap" && strings.Contains(document, "controller_manager_config.yaml") {
			if err := yaml.Unmarshal([]byte(document), &config); err != nil {
				t.Fatal(err)
			}
			if err := yaml.Unmarshal([]byte(config.Data["controller_manager_config.yaml"]), &configuration); err != nil {
				t.Fatal(err)
			}
		}
	}
	queued := configuration.Integrations.Frameworks
	if !slices.Contains(queued, "workload.codeflare.dev/appwrapper") {
		t.Fatalf("the integrations are %q", queued)
	}
	for _, kind := range []string{"batch/job", "pod", "deployment", "statefulset", "leaderworkerset.x-k8s.io/leaderworkerset"} {
		if slices.Contains(queued, kind) {
			t.Errorf("Kueue queues %s", kind)
		}
	}
	if strings.Contains(rendered, "\nkind: AdmissionCheck\n") {
		t.Error("there is an AdmissionCheck")
	}
	for _, resource := range writable(t) {
		if strings.HasSuffix(resource, ".kueue.x-k8s.io") {
			t.Errorf("the role edit or admin writes %s", resource)
		}
	}
}
