// SPDX-License-Identifier: Apache-2.0

// Package samples_test checks that admission accepts the samples.
package samples_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	kubeflow "github.com/kubeflow/training-operator/pkg/apis/kubeflow.org/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	"sigs.k8s.io/yaml"

	"github.com/mlbatch/mlbatch/controller/admissionrules"
	"github.com/mlbatch/mlbatch/controller/api/codeflare/v1alpha1"
	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/test/golden"
)

// bare is no AppWrapper.
const bare = "bare-pytorchjob.yaml"

// Policies of team namespaces ask for the class and the policy.
func TestTheBareJobIsAdmitted(t *testing.T) {
	text, err := os.ReadFile(bare)
	if err != nil {
		t.Fatal(err)
	}
	var job kubeflow.PyTorchJob
	if err := yaml.UnmarshalStrict(text, &job); err != nil {
		t.Fatal(err)
	}
	if job.Labels["kueue.x-k8s.io/queue-name"] == "" {
		t.Error("it names no queue")
	}
	if p := job.Spec.RunPolicy.CleanPodPolicy; p == nil || *p != kubeflow.CleanPodPolicyRunning {
		t.Error("its pods may run on after its end")
	}
	for role, spec := range job.Spec.PyTorchReplicaSpecs {
		if spec.Template.Spec.PriorityClassName == "" {
			t.Errorf("the pods of its %s have no class", role)
		}
	}
}

var end = regexp.MustCompile(`(?m)^# ends: (Succeeded|Failed|Running)$`)

// Stories run the samples, and expect this end. The page has what the comment says.
func TestThePageSaysWhatEachSampleIsAndHowItEnds(t *testing.T) {
	files, err := filepath.Glob("*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("there are no samples: %v", err)
	}
	var table strings.Builder
	table.WriteString("\n| sample | | ends |\n|---|---|---|\n")
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		head, _, _ := strings.Cut(string(text), "apiVersion:")
		found := end.FindStringSubmatch(head)
		if found == nil {
			t.Errorf("the comment of %s does not say '# ends: Succeeded', Failed or Running", file)
			continue
		}
		fmt.Fprintf(&table, "| [%s](%s) | %s | %s |\n", file, file, paragraph(head), found[1])
	}
	golden.Between(t, "README.md", "<!-- samples: written by go test ./samples -update -->\n", "\n<!-- end of samples -->", table.String())
}

// paragraph is the first one of a comment.
func paragraph(comment string) string {
	first, _, _ := strings.Cut(comment, "\n#\n")
	return strings.TrimSpace(strings.TrimPrefix(strings.ReplaceAll(first, "\n# ", " "), "#"))
}

func TestSamplesAreAdmitted(t *testing.T) {
	files, err := filepath.Glob("*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("there are no samples: %v", err)
	}
	for _, file := range files {
		if file == bare {
			continue
		}
		t.Run(file, func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var aw v1beta2.AppWrapper
			if err := yaml.UnmarshalStrict(text, &aw); err != nil {
				t.Fatal(err)
			}
			if problems := admissionrules.ValidateCreate(&aw, admissionrules.DefaultLimits); len(problems) > 0 {
				t.Errorf("admission refuses it: %v", problems.ToAggregate())
			}
			if warnings := admissionrules.WarningsOnCreate(&aw); len(warnings) > 0 {
				t.Errorf("admission warns of it: %q", warnings)
			}
			if aw.Labels["kueue.x-k8s.io/queue-name"] == "" {
				t.Error("it names no queue")
			}
		})
	}
}

// What cannot run without a cluster of the right sort is in a folder: stories run the others.
func TestSamplesInFoldersAreAdmitted(t *testing.T) {
	for _, file := range []string{"topology/one-rack.yaml", "storage/job.yaml"} {
		t.Run(file, func(t *testing.T) {
			aw := read[v1beta2.AppWrapper](t, file)[0]
			if problems := admissionrules.ValidateCreate(&aw, admissionrules.DefaultLimits); len(problems) > 0 {
				t.Errorf("admission refuses it: %v", problems.ToAggregate())
			}
			if warnings := admissionrules.WarningsOnCreate(&aw); len(warnings) > 0 {
				t.Errorf("admission warns of it: %q", warnings)
			}
		})
	}
}

// read decodes the documents of a file, all of one type.
func read[T any](t *testing.T, file string) (all []T) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for document := range strings.SplitSeq(string(text), "\n---\n") {
		var object T
		if err := yaml.UnmarshalStrict([]byte(document), &object); err != nil {
			t.Fatal(err)
		}
		all = append(all, object)
	}
	return all
}

// jobIn is the Job that the AppWrapper of a file wraps.
func jobIn(t *testing.T, file string) (job batchv1.Job) {
	t.Helper()
	aw := read[v1beta2.AppWrapper](t, file)[0]
	if err := json.Unmarshal(aw.Spec.Components[0].Template.Raw, &job); err != nil {
		t.Fatal(err)
	}
	return job
}

// The example of a file of teams describes the level that the sample asks for.
func TestTheSampleAsksForALevelOfTheExample(t *testing.T) {
	teams := read[struct {
		Topologies []struct {
			Name   string   `json:"name"`
			Levels []string `json:"levels"`
		} `json:"topologies"`
		Flavors           any `json:"flavors"`
		RequiredResources any `json:"requiredResources"`
		Teams             any `json:"teams"`
	}](t, "../setup/teams/racks.yaml")[0]
	job := jobIn(t, "topology/one-rack.yaml")
	level := job.Spec.Template.Annotations[kueue.PodSetRequiredTopologyAnnotation]
	if !slices.Contains(teams.Topologies[0].Levels, level) {
		t.Errorf("it asks for %q of %q", level, teams.Topologies[0].Levels)
	}
	if mode := job.Spec.CompletionMode; mode == nil || *mode != batchv1.IndexedCompletion {
		t.Error("its pods have no order")
	}
}

// The volume is for this claim only, the claim asks for this volume only, and the Job mounts it.
func TestTheSamplesOfStorageFitTogether(t *testing.T) {
	text, err := os.ReadFile("storage/nfs.yaml")
	if err != nil {
		t.Fatal(err)
	}
	first, second, _ := strings.Cut(string(text), "\n---\n")
	var volume corev1.PersistentVolume
	var claim corev1.PersistentVolumeClaim
	if err := errors.Join(yaml.UnmarshalStrict([]byte(first), &volume), yaml.UnmarshalStrict([]byte(second), &claim)); err != nil {
		t.Fatal(err)
	}
	if ref := volume.Spec.ClaimRef; ref.Namespace != claim.Namespace || ref.Name != claim.Name || claim.Spec.VolumeName != volume.Name {
		t.Errorf("the volume is for %s/%s, and the claim %s/%s asks for %s", ref.Namespace, ref.Name, claim.Namespace, claim.Name, claim.Spec.VolumeName)
	}
	if class := claim.Spec.StorageClassName; class == nil || *class != volume.Spec.StorageClassName {
		t.Error("their classes differ")
	}
	asks := claim.Spec.Resources.Requests[corev1.ResourceStorage]
	if has := volume.Spec.Capacity[corev1.ResourceStorage]; has.Cmp(asks) < 0 || volume.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimRetain {
		t.Errorf("the volume has %s and is reclaimed by %s", has.String(), volume.Spec.PersistentVolumeReclaimPolicy)
	}
	dynamic := read[corev1.PersistentVolumeClaim](t, "storage/claim.yaml")[0]
	mounted := jobIn(t, "storage/job.yaml").Spec.Template.Spec.Volumes[0].PersistentVolumeClaim.ClaimName
	for _, c := range []corev1.PersistentVolumeClaim{claim, dynamic} {
		if c.Name != mounted || !slices.Contains(c.Spec.AccessModes, corev1.ReadWriteMany) {
			t.Errorf("the Job mounts %s, and the claim is %s with %v", mounted, c.Name, c.Spec.AccessModes)
		}
	}
}

// Each record goes the way of a Run: it is read, gets its labels, and is written as the Run's.
func TestFluentBitCollectsTheLogsOfRuns(t *testing.T) {
	text, err := os.ReadFile("fluent-bit/runs.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Pipeline struct {
			Inputs  []struct{ Name, Path, Tag string }
			Filters []map[string]any
			Outputs []struct{ Name, Match string }
		}
	}
	if err := yaml.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	p := file.Pipeline
	if len(p.Inputs) != 1 || p.Inputs[0].Path != "/var/log/containers/*.log" || len(p.Filters) != 3 || len(p.Outputs) != 1 {
		t.Fatalf("the pipeline is %+v", p)
	}
	label := "$kubernetes['labels']['" + v1alpha1.RunLabel + "'] "
	for i, want := range []map[string]string{
		{"name": "kubernetes", "labels": "true"}, {"name": "grep", "regex": label + "."},
		{"name": "rewrite_tag", "rule": label + "^(.+)$ run.$kubernetes['namespace_name'].$1 false"},
	} {
		want["match"] = p.Inputs[0].Tag
		for key, value := range want {
			if got := fmt.Sprint(p.Filters[i][key]); got != value {
				t.Errorf("filter %d: %s is %q, not %q", i, key, got, value)
			}
		}
	}
	if out := p.Outputs[0]; out.Match != "run.*" {
		t.Errorf("the output takes %s", out.Match)
	}
}
