// SPDX-License-Identifier: Apache-2.0

package runs_test

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/mlbatch/mlbatch/controller/api/codeflare/v1alpha1"
	"github.com/mlbatch/mlbatch/test/wording"
	"github.com/mlbatch/mlbatch/tools/mlbatch/runs"
)

// workflow is a Run of steps, of which two have pods, and one waits for quota.
func workflow() []client.Object {
	run := runOf("a", v1alpha1.RunRunning, "step train is Running; 1 of 4 steps have ended")
	step := func(name string, phase v1alpha1.RunPhase, message, made string) {
		one := v1alpha1.StepStatus{Phase: phase, Message: message}
		one.Name, one.Application.Name = name, "app-of-"+name
		if made != "" {
			one.AppWrapper = &v1alpha1.AppWrapperReference{Name: made, UID: types.UID("aw-" + made)}
		}
		run.Status.Steps = append(run.Status.Steps, one)
	}
	step("prepare", v1alpha1.RunSucceeded, "it has succeeded", "a-prepare")
	step("train", v1alpha1.RunRunning, "all pods are ready", "a-train")
	step("draw", v1alpha1.RunQueued, "it waits for quota", "a-draw")
	step("report", v1alpha1.StepWaiting, "", "")
	run.Status.LastFailure = &v1alpha1.LastFailure{Attempt: 2, Step: "train", Pod: "a-train-0", Container: "main", Reason: "Error"}
	of := func(step string) map[string]string {
		return map[string]string{v1alpha1.StepLabel: step, completion: "0"}
	}
	return []client.Object{
		run,
		pod("a-train-0", "worker", of("train"), corev1.PodRunning, corev1.ContainerState{}),
		pod("a-prepare-0", "worker", of("prepare"), corev1.PodSucceeded, corev1.ContainerState{}),
	}
}

func TestTheLogOfAStep(t *testing.T) {
	alone := workflow()
	alone = alone[:len(alone)-1]
	for name, row := range map[string]struct {
		objects          []client.Object
		step, want, says string
	}{
		"of one of two":            {workflow(), "train", "blue/a-train-0/main\n", ""},
		"of the only one":          {alone, "", "blue/a-train-0/main\n", ""},
		"of which":                 {workflow(), "", "", "Run a has steps: choose one of them with --step: prepare, train"},
		"of none":                  {workflow(), "cook", "", "Run a has no step cook: its steps are prepare, train, draw, report"},
		"of one that waits":        {workflow(), "report", "", "step report of Run a has no pods: it is Waiting"},
		"of one that has no quota": {workflow(), "draw", "", "step draw of Run a has no pods: it is Queued: it waits for quota"},
		"of no workflow":           {torch(), "train", "", "Run a has no steps: leave --step out"},
	} {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			err := runs.Logs(t.Context(), cluster(t, interceptor.Funcs{}, row.objects...), logOf, key, runs.Selection{Step: row.step}, &out)
			if row.says != "" {
				wording.Wanted(t, err, row.says)
			} else if err != nil || out.String() != row.want {
				t.Errorf("got %q, %v", &out, err)
			}
		})
	}
}

// A Run of a workflow has a plan for each step, whose Application may be in the files or on the cluster.
func TestAPlanOfEachStep(t *testing.T) {
	sequence := `{apiVersion: codeflare.dev/v1alpha1, kind: Application, metadata: {name: both}, spec: {api: sequence, steps: [survey, theirs], size: md}}`
	theirs := &v1alpha1.Application{}
	theirs.Name, theirs.Namespace = "theirs", "blue"
	theirs.Spec = v1alpha1.ApplicationSpec{API: v1alpha1.APIShell, Image: "b", Command: "who"}
	both := strings.Replace(run, "application: {name: survey}", "application: {name: both}", 1)
	plans, notes, err := read(t, app, sequence, both).Check(t.Context(), cluster(t, interceptor.Funcs{}, theirs))
	if err != nil {
		t.Fatal(err)
	}
	if want := "Run survey-1: no step uses size of Application both: set it in the Applications of the steps"; !slices.Contains(notes, want) {
		t.Errorf("the notes are %q, and lack %q", notes, want)
	}
	var out strings.Builder
	if err := runs.WriteYAML(&out, plans); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"# Run survey-1, step step0: 2 workers", "  name: survey-1-step0\n", "---\n# Run survey-1, step step1: 2 workers", "  name: survey-1-step1\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the plan lacks %q:\n%s", want, &out)
		}
	}
	_, _, err = planned(t, "blue", file(t, app, sequence, both))
	wording.Wanted(t, err, "Run survey-1: step step1: there is no Application theirs in namespace blue yet")
}
