// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"os"
	"strings"
	"testing"
)

// What a field of a kind adds must be known before the kind is.
func TestThePageOfCountedPodsHasEveryKind(t *testing.T) {
	page, err := os.ReadFile("../../../docs/counted.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range known {
		group := map[string]string{"kubeflow.org": "| Kubeflow kinds |", "ray.io": "| Ray kinds |"}[k.GVK.Group]
		if k.MakesNoPods() || group != "" && strings.Contains(string(page), group) {
			continue
		}
		if !strings.Contains(string(page), "| "+k.GVK.Kind+" |") {
			t.Errorf("docs/counted.md has no row for %s", k.GVK.Kind)
		}
	}
}
