// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package e2e_test

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"sigs.k8s.io/e2e-framework/pkg/envconf"
	"sigs.k8s.io/e2e-framework/pkg/features"
	"sigs.k8s.io/yaml"

	workload "github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/test/e2e/needs"
)

// samples are files in samples/, and how each ends. Services run until they are deleted, and so do
// simulated pods.
var samples = map[string]workload.AppWrapperPhase{
	"job.yaml":                   workload.AppWrapperSucceeded,
	"pod.yaml":                   workload.AppWrapperSucceeded,
	"pytorchjob.yaml":            workload.AppWrapperSucceeded,
	"priorities.yaml":            workload.AppWrapperSucceeded,
	"job-with-podgroup.yaml":     workload.AppWrapperSucceeded,
	"held-for-debugging.yaml":    workload.AppWrapperFailed,
	"failing-job.yaml":           workload.AppWrapperFailed,
	"deployment.yaml":            workload.AppWrapperRunning,
	"gpu-job.yaml":               workload.AppWrapperRunning,
	"leaderworkerset.yaml":       workload.AppWrapperRunning,
	"replicationcontroller.yaml": workload.AppWrapperRunning,
}

// untold are the other files. Other stories run what they show, with objects of their own.
var untold = map[string]string{
	"bare-pytorchjob.yaml": "it is no AppWrapper: training_test.go",
	"borrowing.yaml":       "no other team lends anything here: reclaim_test.go",
	"bundle.yaml":          "bundle_test.go",
	"elastic.yaml":         "the image has no torchrun",
	"exit-codes.yaml":      "retry_test.go",
	"jobset.yaml":          "kinds_test.go",
	"notebook.yaml":        "it runs for eight hours: pod.yaml is the same kind",
	"raycluster.yaml":      "the image has no Ray: ray_test.go",
	"rayjob.yaml":          "the image has no Ray: ray_test.go",
}

// A member creates each sample as samples/README.md says, all of them at once.
func TestEverySampleRuns(t *testing.T) {
	testenv.Test(t, features.New("samples").Assess("each comes to its end", func(ctx context.Context, t *testing.T, cfg *envconf.Config) context.Context {
		s := tell(t, cfg, "e2e-kinds", "kate", needs.TrainingPods, needs.EveryKind)
		withGPUs := tell(t, cfg, "e2e-serving", "sven", needs.SimulatedNodes)
		files, err := filepath.Glob("../../samples/*.yaml")
		if err != nil || len(files) != len(samples)+len(untold) {
			t.Fatalf("there are %d samples (%v), and %d are known here", len(files), err, len(samples)+len(untold))
		}
		team := func(file string) *story {
			if file == "gpu-job.yaml" {
				return withGPUs
			}
			return s
		}
		all := map[string]*workload.AppWrapper{}
		for file := range samples {
			all[file] = sample(t, file)
			team(file).create(ctx, all[file])
		}
		for file, end := range samples {
			team(file).untilPhase(ctx, all[file], end)
			if end == workload.AppWrapperRunning {
				team(file).untilReady(ctx, all[file])
			}
		}
		return ctx
	}).Feature())
}

var itsImage = regexp.MustCompile(`image: .*`)

// sample reads one of the samples, with an image that pods of the cluster have.
func sample(t *testing.T, file string) *workload.AppWrapper {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../../samples", file))
	if err != nil {
		t.Fatal(err)
	}
	aw := &workload.AppWrapper{}
	if err := yaml.UnmarshalStrict(itsImage.ReplaceAll(text, []byte("image: "+here.Training.Name)), aw); err != nil {
		t.Fatal(err)
	}
	return aw
}
