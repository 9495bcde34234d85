// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package e2e_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/e2e-framework/pkg/envconf"
	"sigs.k8s.io/e2e-framework/pkg/features"
	"sigs.k8s.io/yaml"

	corev1 "k8s.io/api/core/v1"

	workload "github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/test/e2e/needs"
)

// The job of 'make demo': a settings file becomes an AppWrapper, two real pods train together,
// and the log shows the result.
func TestAGeneratedTrainingJobSucceeds(t *testing.T) {
	testenv.Test(t, features.New("training").Assess("two pods learn together", func(ctx context.Context, t *testing.T, cfg *envconf.Config) context.Context {
		s := tell(t, cfg, "e2e-blue", "alice", needs.TrainingPods, needs.PyTorchJobs, needs.Gangs)
		manifest, err := site.Template(ctx, "pytorchjob-generator", "samples/pytorch-digits/settings.yaml")
		if err != nil {
			t.Fatal(err)
		}
		manifest = strings.ReplaceAll(manifest, needs.TrainingImage, here.Training.Name)
		aw := &workload.AppWrapper{}
		if err := yaml.UnmarshalStrict([]byte(manifest), aw); err != nil {
			t.Fatal(err)
		}
		s.create(ctx, aw)
		s.untilPhase(ctx, aw, workload.AppWrapperSucceeded)

		pods, err := s.pods(ctx, aw.Name)
		if err != nil || len(pods) != 2 {
			t.Fatalf("there are %d pods, not 2 (%v)", len(pods), err)
		}
		for _, p := range pods {
			if p.Spec.SchedulerName != "scheduler-plugins-scheduler" || slices.Contains(here.Simulated, p.Spec.NodeName) {
				t.Errorf("pod %s was placed by %s on %s", p.Name, p.Spec.SchedulerName, p.Spec.NodeName)
			}
		}
		s.hasTrainedTheDigits(ctx, aw.Name)
		return ctx
	}).Feature())
}

// hasTrainedTheDigits looks into the log of the sample digits. Its program fails unless the final
// loss is less than half of the first.
func (s *story) hasTrainedTheDigits(ctx context.Context, job string) {
	s.t.Helper()
	log, err := s.api.CoreV1().Pods(s.namespace).GetLogs(job+"-master-0", &corev1.PodLogOptions{}).DoRaw(ctx)
	if err != nil {
		s.t.Fatal(err)
	}
	for _, want := range []string{`"worldSize": 2`, `"sum": 3.0`, `"event": "done"`} {
		if !strings.Contains(string(log), want) {
			s.t.Errorf("the log lacks %s:\n%s", want, log)
		}
	}
}
