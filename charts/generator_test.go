// SPDX-License-Identifier: Apache-2.0

package charts_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	kubeflow "github.com/kubeflow/training-operator/pkg/apis/kubeflow.org/v1"
	"sigs.k8s.io/yaml"

	"github.com/mlbatch/mlbatch/controller/admissionrules"
	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
)

// TestGeneratedJobs makes the promises that hold for whatever the generator
// renders, on everything that the golden files have it render.
func TestGeneratedJobs(t *testing.T) {
	settings := must(filepath.Glob("../tools/pytorchjob-generator/testdata/*.in.yaml"))(t)
	for _, file := range settings {
		t.Run(filepath.Base(file), func(t *testing.T) {
			rendered, err := render(t, "pytorchjob-generator", values(t, must(os.ReadFile(file))(t)))
			if err != nil {
				t.Fatal(err)
			}
			aw := admitted(t, rendered.Manifest)
			job := pytorchJob(t, aw)
			master := job.Spec.PyTorchReplicaSpecs[kubeflow.PyTorchJobReplicaTypeMaster]
			if worker := job.Spec.PyTorchReplicaSpecs[kubeflow.PyTorchJobReplicaTypeWorker]; worker != nil {
				if diff := cmp.Diff(master.Template, worker.Template); diff != "" {
					t.Errorf("the pods of master and workers differ:\n%s", diff)
				}
			}
			script := master.Template.Spec.Containers[0].Command[2]
			shell := exec.CommandContext(t.Context(), "sh", "-n")
			shell.Stdin = strings.NewReader(script)
			if says, err := shell.CombinedOutput(); err != nil {
				t.Errorf("the shell cannot read the script: %v: %s\n%s", err, says, script)
			}
		})
	}
}

// admitted decodes an AppWrapper strictly and applies the webhook's rules to it.
func admitted(t *testing.T, manifest string) *v1beta2.AppWrapper {
	t.Helper()
	var aw v1beta2.AppWrapper
	if err := yaml.UnmarshalStrict([]byte(manifest), &aw); err != nil {
		t.Fatal(err)
	}
	if problems := admissionrules.ValidateCreate(&aw, admissionrules.DefaultPodSetLimit); len(problems) > 0 {
		t.Fatalf("admission refuses it: %v", problems.ToAggregate())
	}
	if warnings := admissionrules.WarningsOnCreate(&aw); len(warnings) > 0 {
		t.Errorf("admission warns of it: %q", warnings)
	}
	return &aw
}

func pytorchJob(t *testing.T, aw *v1beta2.AppWrapper) kubeflow.PyTorchJob {
	t.Helper()
	var job kubeflow.PyTorchJob
	if err := yaml.UnmarshalStrict(aw.Spec.Components[0].Template.Raw, &job); err != nil {
		t.Fatal(err)
	}
	return job
}
