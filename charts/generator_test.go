// SPDX-License-Identifier: Apache-2.0

package charts_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	generator "github.com/mlbatch/mlbatch/tools/pytorchjob-generator"
)

// tools/pytorchjob-generator tests generated jobs with the chart that mlbatch submit
// embeds. helm template uses the packaged chart.
func TestPackagedGeneratorRendersTheSameAsTheEmbeddedOne(t *testing.T) {
	for _, file := range must(filepath.Glob("../tools/pytorchjob-generator/testdata/*.in.yaml"))(t) {
		settings := values(t, must(os.ReadFile(file))(t))
		packaged, err := render(t, "pytorchjob-generator", settings)
		if err != nil {
			t.Fatal(err)
		}
		_, want, _ := strings.Cut(packaged.Manifest, "/templates/appwrapper.yaml\n")
		got, err := generator.Render(must(versions())(t).Version, settings)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(strings.TrimSpace(want), strings.TrimSpace(got)); diff != "" {
			t.Errorf("%s (-packaged +embedded)\n%s", filepath.Base(file), diff)
		}
	}
}
