// SPDX-License-Identifier: Apache-2.0

package lifecycle_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/internal/kinds"
	"github.com/mlbatch/mlbatch/controller/internal/lifecycle"
)

// failedPod adds a pod that has failed like this.
func failedPod(name string, failures ...lifecycle.Failure) change {
	return func(s *lifecycle.Snapshot) {
		s.Pods = append(s.Pods, lifecycle.Pod{Name: name, Phase: corev1.PodFailed, Failures: failures})
	}
}

// exits is a container that ends with this code so long after the deployment.
func exits(container string, code int32, after time.Duration) lifecycle.Failure {
	return lifecycle.Failure{Container: container, ExitCode: code, At: deployedAt.Add(after)}
}

func outOfMemory(container string, after time.Duration) lifecycle.Failure {
	f := exits(container, 137, after)
	f.Cause = lifecycle.OOMKilled
	return f
}

func evictedBecause(why string, after time.Duration) lifecycle.Failure {
	return lifecycle.Failure{Cause: lifecycle.Evicted, Why: why, At: deployedAt.Add(after)}
}

func TestAResetNamesWhatFailedFirst(t *testing.T) {
	const low = "The node was low on resource: ephemeral-storage"
	deletedPods := allPods(func(p *lifecycle.Pod) { p.Terminating = true })
	const count = "1 of 1 components failed"
	for sentence, tc := range map[string]struct {
		given []change
		want  string
	}{
		"a container that needs more memory": {[]change{failedPod("a-0", outOfMemory("main", 0))},
			"; pod a-0: container main was killed for lack of memory (OOMKilled, exit code 137)"},
		"a full disk":                           {[]change{failedPod("a-0", evictedBecause(low, 0))}, "; pod a-0 was evicted by its kubelet (Evicted): " + low},
		"an eviction for an unknown reason":     {[]change{failedPod("a-0", evictedBecause("", 0))}, "; pod a-0 was evicted by its kubelet (Evicted)"},
		"an exit code":                          {[]change{failedPod("a-0", exits("main", 12, 0))}, "; pod a-0: container main ended with exit code 12"},
		"the first of several containers":       {[]change{failedPod("a-0", exits("main", 1, time.Minute), exits("side", 2, time.Second))}, "; pod a-0: container side ended with exit code 2"},
		"the first of several pods":             {[]change{failedPod("a-0", exits("main", 1, time.Minute)), failedPod("a-1", exits("main", 2, 0))}, "; pod a-1: container main ended with exit code 2"},
		"one of which it is known when":         {[]change{failedPod("a-0", lifecycle.Failure{Container: "main", ExitCode: 3}), failedPod("a-1", exits("main", 2, 0))}, "; pod a-1: container main ended with exit code 2"},
		"by name, of those at the same time":    {[]change{failedPod("a-1", exits("main", 1, 0)), failedPod("a-0", exits("main", 2, 0))}, "; pod a-0: container main ended with exit code 2"},
		"a cause before an earlier exit code":   {[]change{failedPod("a-0", exits("main", 1, 0)), failedPod("a-1", outOfMemory("main", time.Second))}, "; pod a-1: container main was killed for lack of memory (OOMKilled, exit code 137)"},
		"no exit code of a pod that is deleted": {[]change{failedPod("a-0", exits("main", 143, 0)), deletedPods}, ""},
		"but a cause":                           {[]change{failedPod("a-0", evictedBecause("", 0)), deletedPods}, "; pod a-0 was evicted by its kubelet (Evicted)"},
		"nothing, if nothing is known":          {[]change{failedPod("a-0")}, ""},
	} {
		t.Run(sentence, func(t *testing.T) {
			s := runningJob()
			verdict(kinds.Failed)(&s)
			for _, c := range tc.given {
				c(&s)
			}
			d := lifecycle.Decide(s, deployedAt.Add(time.Hour))
			c := meta.FindStatusCondition(d.Status.Conditions, string(v1beta2.Unhealthy))
			if c == nil || c.Status != metav1.ConditionTrue || c.Message != count+tc.want {
				t.Fatalf("the condition is %v, want the message %q", c, count+tc.want)
			}
			if d.Event == nil || d.Event.Message != c.Message {
				t.Errorf("the event is %v", d.Event)
			}
		})
	}
}

// What a component that has succeeded left behind explains nothing.
func TestNoFailureOfAFinishedComponentIsNamed(t *testing.T) {
	s := runningJob()
	verdict(kinds.Failed)(&s)
	and("other", func(one *lifecycle.Snapshot) { finished(one); one.Components[0].Verdict = kinds.Succeeded })(&s)
	s.Pods = []lifecycle.Pod{{Name: "o", Component: 1, Phase: corev1.PodFailed, Failures: []lifecycle.Failure{outOfMemory("main", 0)}}}
	d := lifecycle.Decide(s, deployedAt.Add(time.Hour))
	if d.Event == nil || strings.Contains(d.Event.Message, "OOMKilled") {
		t.Errorf("the event is %v", d.Event)
	}
}

// The work is not tried again, and leaves a node, and fails later than at once: all say what failed.
func TestEveryEndNamesWhatFailed(t *testing.T) {
	memory := outOfMemory("main", 0)
	for sentence, given := range map[string][]change{
		"beyond the limit of retries":   {verdict(kinds.Failed), failedPod("a", memory), retried(3)},
		"a node is to blame":            {failedOn("n", rejected), failedPod("a", memory)},
		"pods that nobody has replaced": {failedPod("a", memory), condition(v1beta2.Unhealthy, metav1.ConditionTrue, v1beta2.ReasonFoundFailedPods, 0)},
	} {
		s := runningJob()
		for _, c := range given {
			c(&s)
		}
		d := lifecycle.Decide(s, deployedAt.Add(time.Hour))
		if d.Event == nil || !strings.HasSuffix(d.Event.Message, "; pod a: container main was killed for lack of memory (OOMKilled, exit code 137)") {
			t.Errorf("%s: the event is %v", sentence, d.Event)
		}
	}
}
