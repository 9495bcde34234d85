// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package e2e_test

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/e2e-framework/pkg/envconf"
	"sigs.k8s.io/e2e-framework/pkg/features"

	"github.com/mlbatch/mlbatch/controller/api/codeflare/v1alpha1"
	workload "github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/test/e2e/needs"
)

// What depends on a step that failed is skipped, and what is there for failures runs. A sequence
// runs to its end.
func TestAWorkflowReportsAFailure(t *testing.T) {
	testenv.Test(t, features.New("workflow").Assess("each step starts when its turn comes", func(ctx context.Context, t *testing.T, cfg *envconf.Config) context.Context {
		s := tell(t, cfg, "e2e-runs", "ruth", needs.TrainingPods, needs.Runs)
		s.create(ctx, s.program("hello", `echo "$CODEFLARE_STEP of $CODEFLARE_RUN"`))
		s.create(ctx, s.program("failing", "echo no data; exit 7"))
		step := func(name, application string, when v1alpha1.When, dependsOn ...string) v1alpha1.Step {
			return v1alpha1.Step{Name: name, Application: v1alpha1.ApplicationReference{Name: application}, When: when, DependsOn: dependsOn, Retries: ptr.To(int32(0))}
		}
		s.create(ctx, &v1alpha1.Application{ObjectMeta: metav1.ObjectMeta{Name: "pipeline"}, Spec: v1alpha1.ApplicationSpec{
			API: v1alpha1.APIWorkflow, Workflow: &v1alpha1.Workflow{Steps: []v1alpha1.Step{
				step("prepare", "hello", ""), step("train", "failing", "", "prepare"),
				step("evaluate", "hello", "", "train"), step("report", "hello", v1alpha1.WhenFailed, "train"),
			}},
		}})
		s.create(ctx, &v1alpha1.Application{ObjectMeta: metav1.ObjectMeta{Name: "twice"}, Spec: v1alpha1.ApplicationSpec{
			API: v1alpha1.APISequence, Steps: []string{"hello", "hello"},
		}})
		nightly, greetings := execution("nightly", "pipeline", "100m"), execution("greetings", "twice", "100m")
		s.create(ctx, nightly)
		s.create(ctx, greetings)
		s.untilRun(ctx, nightly, v1alpha1.RunFailed)
		s.untilRun(ctx, greetings, v1alpha1.RunSucceeded)

		s.phases(nightly, v1alpha1.RunSucceeded, v1alpha1.RunFailed, v1alpha1.StepSkipped, v1alpha1.RunSucceeded)
		s.phases(greetings, v1alpha1.RunSucceeded, v1alpha1.RunSucceeded)
		if f := nightly.Status.LastFailure; f == nil || f.ExitCode == nil || *f.ExitCode != 7 || !strings.Contains(f.Message, "no data") {
			t.Errorf("the last failure is %+v", f)
		}
		s.logsOf(ctx, "nightly-report", "report of nightly")
		return ctx
	}).Feature())
}

// phases are those of the steps of a Run. Each started after the one that it depends on had ended.
func (s *story) phases(run *v1alpha1.Run, want ...v1alpha1.RunPhase) {
	s.t.Helper()
	ends := map[string]*metav1.Time{}
	for i, step := range run.Status.Steps {
		if step.Phase != want[i] {
			s.t.Errorf("step %s of %s is %s (%s), want %s", step.Name, run.Name, step.Phase, step.Message, want[i])
		}
		ends[step.Name] = step.CompletionTime
		for _, before := range step.DependsOn {
			if step.StartTime != nil && step.StartTime.Before(ends[before]) {
				s.t.Errorf("step %s started before %s had ended", step.Name, before)
			}
		}
	}
	if len(run.Status.Steps) != len(want) {
		s.t.Errorf("Run %s has %d steps", run.Name, len(run.Status.Steps))
	}
}

// logsOf finds a text in the log of the only pod of an AppWrapper.
func (s *story) logsOf(ctx context.Context, appWrapper, want string) {
	s.t.Helper()
	pods, err := s.api.CoreV1().Pods(s.namespace).List(ctx, metav1.ListOptions{LabelSelector: workload.AppWrapperLabel + "=" + appWrapper})
	if err != nil || len(pods.Items) != 1 {
		s.t.Fatalf("%d pods of %s: %v", len(pods.Items), appWrapper, err)
	}
	log, err := s.api.CoreV1().Pods(s.namespace).GetLogs(pods.Items[0].Name, &corev1.PodLogOptions{}).DoRaw(ctx)
	if err != nil || !strings.Contains(string(log), want) {
		s.t.Errorf("the log of %s lacks %q (%v):\n%s", appWrapper, want, err, log)
	}
}
