// SPDX-License-Identifier: Apache-2.0

package generator_test

import (
	"context"
	stdjson "encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	kubeflow "github.com/kubeflow/training-operator/pkg/apis/kubeflow.org/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"
	jobset "sigs.k8s.io/jobset/api/jobset/v1alpha2"
	"sigs.k8s.io/json"
	podgroup "sigs.k8s.io/scheduler-plugins/apis/scheduling/v1alpha1"
	"sigs.k8s.io/yaml"

	"github.com/mlbatch/mlbatch/controller/admissionrules"
	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	generator "github.com/mlbatch/mlbatch/tools/pytorchjob-generator"
)

// TestGeneratedJobs checks what must hold for all generated jobs, with the golden files and the
// examples.
func TestGeneratedJobs(t *testing.T) {
	for _, file := range files(t, "testdata/*.in.yaml", "examples/*.yaml") {
		t.Run(filepath.Base(file), func(t *testing.T) {
			job := rendered(t, settings(t, file))
			shell(t, job.script())
		})
	}
}

// job is a checked AppWrapper and the pods that it creates.
type job struct {
	appWrapper *v1beta2.AppWrapper
	pods       []corev1.PodTemplateSpec
}

// script is the script that the shell in the containers runs.
func (j job) script() string { return expanded(j.pods[0].Spec.Containers[0].Command[2]) }

// variable matches what Kubernetes expands in a container's command.
var variable = regexp.MustCompile(`\$(\$|\([^)]*\))`)

// expanded returns a word of a command after Kubernetes has expanded its variables.
func expanded(word string) string {
	return variable.ReplaceAllStringFunc(word, func(found string) string {
		if found == "$$" {
			return "$"
		}
		return "a variable's value"
	})
}

// rendered renders settings and checks the result as an API server and the webhooks do.
func rendered(t failer, settings map[string]any) job {
	t.Helper()
	manifest, err := generator.Render("0.0.1", settings)
	if err != nil {
		t.Fatalf("%v", err)
	}
	aw, err := generator.AppWrapper(manifest)
	if err != nil {
		t.Fatalf("%v:\n%s", err, manifest)
	}
	checkShape(t, object(t, []byte(manifest)))
	problems := admissionrules.ValidateCreate(aw, admissionrules.DefaultLimits)
	// The generator leaves the names of images to admission.
	problems = slices.DeleteFunc(problems, func(p *field.Error) bool { return strings.HasSuffix(p.Field, ".image") })
	if len(problems) > 0 {
		t.Fatalf("admission refuses it: %v\n%s", problems.ToAggregate(), manifest)
	}
	if warnings := admissionrules.WarningsOnCreate(aw); len(warnings) > 0 {
		t.Errorf("admission returns warnings: %q", warnings)
	}
	j := job{appWrapper: aw}
	for _, component := range aw.Spec.Components {
		template, err := admissionrules.Template(&component)
		if err != nil {
			t.Fatalf("%v", err)
		}
		checkShape(t, template)
		j.pods = append(j.pods, pods(t, template.GetKind(), component.Template.Raw)...)
	}
	for _, other := range j.pods[1:] {
		if diff := cmp.Diff(j.pods[0], other); diff != "" {
			t.Errorf("the pods of master and workers differ:\n%s", diff)
		}
	}
	return j
}

// pods decodes a component as its operator does, and returns its pod templates.
func pods(t failer, kind string, raw []byte) []corev1.PodTemplateSpec {
	t.Helper()
	var all []corev1.PodTemplateSpec
	var err error
	switch kind {
	case "PyTorchJob":
		var o kubeflow.PyTorchJob
		err = decode(raw, &o)
		for _, replica := range o.Spec.PyTorchReplicaSpecs {
			all = append(all, replica.Template)
		}
	case "JobSet":
		var o jobset.JobSet
		err = decode(raw, &o)
		for _, replicated := range o.Spec.ReplicatedJobs {
			all = append(all, replicated.Template.Spec.Template)
		}
	default:
		err = decode(raw, &podgroup.PodGroup{})
	}
	if err != nil {
		t.Fatalf("%s: %v", kind, err)
	}
	return all
}

// decode reads JSON, because YAML does not support all characters.
func decode(raw []byte, into any) error {
	strict, err := json.UnmarshalStrict(raw, into)
	return errors.Join(append(strict, err)...)
}

func object(t failer, text []byte) *unstructured.Unstructured {
	t.Helper()
	o := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(text, &o.Object); err != nil {
		t.Fatalf("cannot parse: %v\n%s", err, text)
	}
	return o
}

// shell fails the test if a shell cannot parse the script.
func shell(t failer, script string) {
	t.Helper()
	for _, name := range []string{"sh", "bash"} {
		command := exec.CommandContext(context.Background(), name, "-n")
		command.Stdin = strings.NewReader(script)
		if says, err := command.CombinedOutput(); err != nil {
			t.Errorf("%s cannot parse the script: %v: %s\n%s", name, err, says, script)
		}
	}
}

func files(t *testing.T, patterns ...string) []string {
	t.Helper()
	var all []string
	for _, pattern := range patterns {
		found, err := filepath.Glob(pattern)
		if err != nil || len(found) == 0 {
			t.Fatalf("there is no %s (%v)", pattern, err)
		}
		all = append(all, found...)
	}
	return all
}

func settings(t *testing.T, file string) map[string]any {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	parsed := map[string]any{}
	if err := yaml.UnmarshalStrict(text, &parsed); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return parsed
}

// Helm may pass numbers as json.Number.
func TestNumbersCanBeLiterals(t *testing.T) {
	for _, file := range files(t, "testdata/*.in.yaml", "examples/*.yaml") {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		literal := map[string]any{}
		if err := yaml.Unmarshal(text, &literal, func(d *stdjson.Decoder) *stdjson.Decoder { d.UseNumber(); return d }); err != nil {
			t.Fatal(err)
		}
		got, err := generator.Render("0.0.1", literal)
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		want, err := generator.Render("0.0.1", settings(t, file))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got)\n%s", file, diff)
		}
	}
}

func TestErrorsAreOneSentence(t *testing.T) {
	for want, settings := range map[string]map[string]any{
		"the settings are wrong: containerImage is missing: set the image that has the program":                                       {"jobName": "a"},
		"the settings are wrong: nothing is called 'x' here":                                                                          {"x": 1},
		"the settings are wrong: volumes/0: nothing is called 'x' here":                                                               {"volumes": []any{map[string]any{"x": 1}}},
		"the settings are wrong: numCpusPerPod: 'ten' is no amount: write a number, and a unit such as m, k, M, G, Ki, ":              {"numCpusPerPod": "ten"},
		"the settings are wrong: numGpusPerPod: is -1, and must be at least 0; numPods: is 0, and must be at least 1":                 {"numPods": 0, "numGpusPerPod": -1},
		"the settings are wrong: numPods: is a text, and must be a whole number; priority: value must be one of 'default-priority', ": {"numPods": "x", "priority": "y"},
	} {
		if _, err := generator.Render("0.0.1", settings); err == nil || !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// The effect of a value that no golden file sets was never reviewed.
func TestEveryValueIsSetInAGoldenFile(t *testing.T) {
	unset := settings(t, "chart/values.yaml")
	for _, file := range files(t, "testdata/*.in.yaml") {
		for value := range settings(t, file) {
			delete(unset, value)
		}
	}
	for value := range unset {
		t.Errorf("no golden file sets %s", value)
	}
}
