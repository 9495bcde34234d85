// SPDX-License-Identifier: Apache-2.0

package arch_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mlbatch/mlbatch/test/metricspage"
)

// Each package that makes metrics has a table in docs/monitoring.md, which its test writes.
func TestThePageOfMetricsHasEveryPackage(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(root, "docs", "monitoring.md"))
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, p := range packages(t) {
		if !strings.HasPrefix(p.name, "controller") || !slices.Contains(p.imports, "github.com/prometheus/client_golang/prometheus") {
			continue
		}
		if found++; !strings.Contains(string(page), metricspage.Begin(p.name)) {
			t.Errorf("%s makes metrics, and docs/monitoring.md has no table of them: add one, and test it with test/metricspage", p.name)
		}
	}
	if found < 3 {
		t.Errorf("only %d packages make metrics", found)
	}
}
