// SPDX-License-Identifier: Apache-2.0

package lifecycle_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/internal/kinds"
	"github.com/mlbatch/mlbatch/controller/internal/lifecycle"
)

// started adds a pod that started that long after deployedAt, and asks for these GPUs.
func started(at time.Duration, phase corev1.PodPhase, gpus int64) change {
	return func(s *lifecycle.Snapshot) {
		s.Pods = append(s.Pods, lifecycle.Pod{Phase: phase, Started: deployedAt.Add(at), Devices: map[string]int64{"nvidia.com/gpu": gpus}})
	}
}

// declaring has the pod sets ask for these GPUs.
func declaring(gpus int64) change {
	return func(s *lifecycle.Snapshot) { s.Devices = map[string]int64{"nvidia.com/gpu": gpus} }
}

func TestRunningNoticesSurplusPods(t *testing.T) {
	const minute = time.Minute
	all := []change{ready, started(0, runs, 8), started(0, runs, 8)}
	and := func(more ...change) []change { return append(all[:len(all):len(all)], more...) }
	quiet := outcome{Phase: v1beta2.AppWrapperRunning}
	waits := outcome{Phase: v1beta2.AppWrapperRunning, Requeue: minute}
	reset := outcome{Phase: v1beta2.AppWrapperResetting, Retries: 1, Event: "SurplusPods", Conditions: map[string]string{
		"SurplusPods": "True SurplusPods", "Unhealthy": "True SurplusPods", "DeletingResources": "True DeletionInitiated", "PodsReady": "False Resetting"}}
	told := outcome{Phase: v1beta2.AppWrapperRunning, Event: "SurplusPods", Conditions: map[string]string{"SurplusPods": "True SurplusPods"}}
	spared := policy(func(p *lifecycle.Policy) { p.ResetSurplus = false })
	known := func(s *lifecycle.Snapshot) {
		condition(v1beta2.SurplusPods, metav1.ConditionTrue, v1beta2.ReasonSurplusPods, minute)(s)
		s.Status.Conditions[len(s.Status.Conditions)-1].Message = "pods with the AppWrapper's label exceed its pod sets: " +
			"3 pods instead of 2. Remove what adds them, or submit the AppWrapper again with larger pod sets"
	}
	checkRows(t, runningJob, map[string]row{
		"as many pods as declared are no surplus":        {given: all, after: time.Hour, want: quiet},
		"one more has the failure grace to go":           {given: and(started(5*minute, runs, 0)), after: 5 * minute, want: waits},
		"then the attempt ends":                          {given: and(started(5*minute, runs, 0)), after: 6 * minute, want: reset},
		"the grace counts from the pod that is too much": {given: and(started(5*minute, runs, 0), started(7*minute, runs, 0)), after: 6 * minute, want: reset},
		"its order in the list does not matter":          {given: []change{ready, started(5*minute, runs, 0), started(0, runs, 0), started(0, runs, 0)}, after: 5 * minute, want: waits},
		"no annotation makes the grace longer":           {given: and(started(5*minute, runs, 0), policy(func(p *lifecycle.Policy) { p.FailureGrace = time.Hour })), after: 6 * minute, want: reset},
		"a pod that a node prepares uses that":           {given: and(started(5*minute, pending, 0)), after: 6 * minute, want: reset},
		"a pod without a node uses nothing":              {given: and(withPods(pending)), after: time.Hour, want: quiet},
		"a pod that has ended uses nothing":              {given: and(started(0, done, 8), started(0, broken, 8)), after: time.Hour, want: quiet},
		"a pod that is being deleted is replaced":        {given: and(allPods(func(p *lifecycle.Pod) { p.Terminating = true }), started(0, runs, 8), started(0, runs, 8)), after: time.Hour, want: quiet},
		"a start in the future is now":                   {given: and(started(time.Hour, runs, 0)), after: 5 * minute, want: waits},

		"as many devices as declared are no surplus": {given: and(declaring(16)), after: time.Hour, want: quiet},
		"more devices are one":                       {given: and(declaring(15)), after: time.Hour, want: reset},
		"so are devices where there should be none":  {given: and(declaring(0)), after: time.Hour, want: reset},
		"more devices have the grace, too":           {given: []change{ready, started(0, runs, 8), started(5*minute, runs, 9), declaring(16)}, after: 5 * minute, want: waits},
		"devices that do not count are no surplus":   {given: all, after: time.Hour, want: quiet},

		"surplus pods that may stay are announced": {given: and(started(5*minute, runs, 0), spared), after: 6 * minute, want: told},
		"once":                     {given: and(started(5*minute, runs, 0), spared, known), after: time.Hour, want: quiet},
		"until they are gone":      {given: and(spared, known), after: time.Hour, want: outcome{Phase: v1beta2.AppWrapperRunning, Conditions: map[string]string{"SurplusPods": "False NoSurplusPods"}}},
		"success comes first":      {given: []change{verdict(kinds.Succeeded), finished, started(0, runs, 0), started(0, runs, 0), started(0, runs, 0)}, after: time.Hour, want: outcome{Phase: v1beta2.AppWrapperRunning, Requeue: minute}},
		"without a retry it fails": {given: and(started(0, runs, 0), retried(3)), after: time.Hour, want: outcome{Phase: v1beta2.AppWrapperFailed, Retries: 3, Event: "SurplusPods", Conditions: map[string]string{"SurplusPods": "True SurplusPods", "Unhealthy": "True SurplusPods", "PodsReady": "False Failed"}}},
		"the sooner of two waits counts, that for pods":        {given: []change{condition(v1beta2.PodsReady, metav1.ConditionFalse, "Resuming", 0), twoPodSets, started(30*time.Second, runs, 8), declaring(7)}, after: 45 * time.Second, want: outcome{Phase: v1beta2.AppWrapperRunning, Requeue: 15 * time.Second}},
		"the sooner of two waits counts, that for the surplus": {given: []change{condition(v1beta2.PodsReady, metav1.ConditionFalse, "Resuming", 0), twoPodSets, started(-30*time.Second, runs, 8), declaring(7)}, after: 20 * time.Second, want: outcome{Phase: v1beta2.AppWrapperRunning, Requeue: 10 * time.Second}},
	})
}
