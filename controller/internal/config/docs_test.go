// SPDX-License-Identifier: Apache-2.0

package config

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTheDocumentationShowsTheDefaults(t *testing.T) {
	text, err := os.ReadFile("../../../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "```yaml\n")
	file, _, found := strings.Cut(rest, "```")
	if !found {
		t.Fatal("docs/configuration.md has no YAML block")
	}
	got, _, err := Parse([]byte(file))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(Default(), got, cmp.AllowUnexported(AppWrapper{})); diff != "" {
		t.Errorf("(-defaults +documented)\n%s", diff)
	}
}
