// SPDX-License-Identifier: Apache-2.0

package config

import (
	"os"
	"reflect"
	"regexp"
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
	for _, key := range keys(reflect.TypeFor[Config](), "") {
		if !ofOthers.MatchString(key) && !strings.Contains(string(text), last(key)) {
			t.Errorf("%s is not described", key)
		}
	}
}

func TestTheDocumentationShowsTheDefaultsOfTheControllerOfRuns(t *testing.T) {
	text, err := os.ReadFile("../../../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "## The controller of Runs\n")
	_, rest, _ := strings.Cut(section, "```yaml\n")
	file, _, found := strings.Cut(rest, "```")
	if !found {
		t.Fatal("the section has no YAML block")
	}
	got, _, err := ParseRuns([]byte(file))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(DefaultRuns(), got); diff != "" {
		t.Errorf("(-defaults +documented)\n%s", diff)
	}
	for _, key := range keys(reflect.TypeFor[Runs](), "") {
		if !strings.Contains(string(text), last(key)) {
			t.Errorf("%s is not described", key)
		}
	}
}

// ofOthers matches keys of Kubernetes' own types.
var ofOthers = regexp.MustCompile(`resourceTaints\.|managedJobsNamespaceSelector\.`)
