// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
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

func TestTheGuideSaysHowLongNodesMayTakeToComeBack(t *testing.T) {
	text, err := os.ReadFile("../../../docs/fault-tolerance.md")
	if err != nil {
		t.Fatal(err)
	}
	says := fmt.Sprintf("the work leaves after `nodeHealth.notReady.gracePeriod`: %v minute |", Default().AppWrapper.NodeHealth.NotReady.GracePeriod.Minutes())
	if !strings.Contains(string(text), says) {
		t.Errorf("docs/fault-tolerance.md does not say %q", says)
	}
}

// The examples of rules about nodes can be copied.
func TestTheExamplesOfNodeHealthAreAccepted(t *testing.T) {
	for page, heading := range map[string]string{"configuration.md": "### nodeHealth\n", "install.md": "### Other sources of node health\n", "drain.md": "## What the jobs do\n"} {
		text, err := os.ReadFile("../../../docs/" + page)
		if err != nil {
			t.Fatal(err)
		}
		_, section, _ := strings.Cut(string(text), heading)
		_, rest, _ := strings.Cut(section, "```yaml\n")
		example, _, found := strings.Cut(rest, "```")
		if !found {
			t.Fatalf("%s has no YAML block below %q", page, heading)
		}
		var c Config
		if page != "configuration.md" {
			c = inValues(t, []byte(example))
		} else if c, _, err = Parse([]byte(example)); err != nil {
			t.Fatal(err)
		}
		if c.AppWrapper.NodeHealth.None() {
			t.Errorf("%s shows no rule", page)
		}
	}
}

func TestTheExampleOfDeviceActivityIsAccepted(t *testing.T) {
	text, err := os.ReadFile("../../../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "### deviceActivity\n")
	_, rest, _ := strings.Cut(section, "```yaml\n")
	example, _, _ := strings.Cut(rest, "```")
	if c, _, err := Parse([]byte(example)); err != nil || c.AppWrapper.DeviceActivity.PrometheusURL == "" {
		t.Errorf("the example is refused, or asks nobody: %v", err)
	}
	_, section, _ = strings.Cut(section, "#### A token and certificates\n")
	_, rest, _ = strings.Cut(section, "```yaml\n")
	example, _, _ = strings.Cut(rest, "```")
	if c := inValues(t, []byte(example)); c.AppWrapper.DeviceActivity.TokenFile == "" || c.AppWrapper.DeviceActivity.CAFile == "" {
		t.Error("the example for OpenShift has no token, or no certificates")
	}
}

// ofOthers matches keys of Kubernetes' own types.
var ofOthers = regexp.MustCompile(`resourceTaints\.|managedJobsNamespaceSelector\.`)
