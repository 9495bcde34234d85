// SPDX-License-Identifier: Apache-2.0

package lifecycle_test

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/internal/kinds"
	"github.com/mlbatch/mlbatch/controller/internal/lifecycle"
)

func TestRunningWatchesForCrashLoops(t *testing.T) {
	// crashes is for a pod that started then.
	crashes := func(at time.Duration) change {
		return last(func(p *lifecycle.Pod) { p.Name, p.CrashLoop, p.Started = "p", "c", deployedAt.Add(at) })
	}
	runsSince := func(at time.Duration) change {
		return last(func(p *lifecycle.Pod) { p.RunsSince = deployedAt.Add(at) })
	}
	noticed := condition(v1beta2.PodsReady, metav1.ConditionFalse, v1beta2.ReasonInsufficientPodsReady, time.Hour)
	known := condition(v1beta2.Unhealthy, metav1.ConditionTrue, v1beta2.ReasonCrashLoop, time.Hour)
	announced := outcome{Phase: v1beta2.AppWrapperRunning, Event: "CrashLoop", Conditions: map[string]string{"Unhealthy": "True CrashLoop"}}
	checkRows(t, runningJob, map[string]row{
		"a pod whose program crashes is not ready": {
			given: []change{ready, of(0, 0, runs, runs), crashes(0)},
			after: time.Hour,
			want: outcome{Phase: v1beta2.AppWrapperRunning, Requeue: time.Minute,
				Conditions: map[string]string{"PodsReady": "False InsufficientPodsReady"}},
		},
		"after the failure grace it is unhealthy": {
			given: []change{noticed, of(0, 0, runs, runs), crashes(0)},
			after: time.Hour + time.Minute,
			want:  announced,
		},
		"that is said once, and nothing is reset": {
			given: []change{noticed, known, of(0, 0, runs, runs), crashes(0)},
			after: 100 * time.Hour,
			want:  rests,
		},
		"from the start, too": {
			given: []change{of(0, 0, runs, runs), crashes(10 * time.Second)},
			after: 70 * time.Second,
			want:  announced,
		},
		"a program that runs again has to do so for the failure grace": {
			given: []change{noticed, known, of(0, 0, runs, runs), crashes(0), runsSince(2 * time.Hour)},
			after: 2*time.Hour + 20*time.Second,
			want:  waitsFor(40 * time.Second),
		},
		"then all is well": {
			given: []change{noticed, known, of(0, 0, runs, runs), crashes(0), runsSince(2 * time.Hour)},
			after: 2*time.Hour + time.Minute,
			want: outcome{Phase: v1beta2.AppWrapperRunning,
				Conditions: map[string]string{"PodsReady": "True SufficientPodsReady", "Unhealthy": "False FoundNoFailedPods"}},
		},
		"if another pod is missing, that is late as usual": {
			given: []change{noticed, of(0, 0, runs), crashes(0)},
			after: time.Hour + time.Minute,
			want:  resets("InsufficientPodsReady"),
		},
		"pods that come one by one wait for the first": {
			given: []change{inTurn, of(0, 0, runs), crashes(10 * time.Second)},
			after: 5*time.Minute + 11*time.Second,
			want:  announced,
		},
		"so do those that wait for other pods": {
			given: []change{comes(kinds.OneByOne), of(0, 0, runs, runs), crashes(10 * time.Second)},
			after: 6 * time.Minute,
			want:  announced,
		},
		"a program that runs again has the warmup grace until the next pod comes": {
			given: []change{inTurn, of(0, 0, runs), crashes(10 * time.Second), runsSince(4 * time.Minute)},
			after: 6 * time.Minute,
			want:  waitsFor(3 * time.Minute),
		},
		"a pod that does not start is late as usual": {
			given: []change{inTurn, noticed, of(0, 0, pending), of(0, 0, runs), crashes(0)},
			after: time.Hour + time.Minute,
			want:  resets("InsufficientPodsReady"),
		},
		"so is one that other pods do not wait for": {
			given: []change{comes(kinds.OneByOne), of(0, 0, runs), crashes(10 * time.Second)},
			after: 6 * time.Minute,
			want:  startsAgain("InsufficientPodsReady"),
		},
		"pods that crash nowhere do not wait for those of another component": {
			given: []change{inTurn, and("second", func(s *lifecycle.Snapshot) { s.Components[0].Turns = nil }), of(0, 0, runs), of(1, 0, runs), crashes(10 * time.Second)},
			after: 6 * time.Minute,
			want:  startsAgain("InsufficientPodsReady"),
		},
		"a pod may prepare meanwhile, and may wait for the one that crashes": {
			given: []change{of(0, 0, runs), crashes(10 * time.Second), of(0, 0, pending), begunAt(10 * time.Second)},
			after: 6 * time.Minute,
			want: outcome{Phase: v1beta2.AppWrapperRunning, Event: "CrashLoop", Requeue: 54*time.Minute + 10*time.Second,
				Conditions: map[string]string{"Unhealthy": "True CrashLoop"}},
		},
		"it does not succeed without a report": {
			given: []change{unknownKind, noticed, of(0, 0, done, done, runs), crashes(0)},
			after: time.Hour,
			want: outcome{Phase: v1beta2.AppWrapperRunning,
				Conditions: map[string]string{"PodsReady": "True SufficientPodsReady", "Unhealthy": "False FoundNoFailedPods"}},
		},
	})
}

func TestCountsOfPodsNameThoseThatCrash(t *testing.T) {
	s := runningJob()
	for _, c := range []change{ready, of(0, 0, runs, runs), last(func(p *lifecycle.Pod) { p.CrashLoop, p.Started = "c", deployedAt })} {
		c(&s)
	}
	d := lifecycle.Decide(s, deployedAt.Add(time.Hour))
	want := "2 pods expected; 0 pods pending; 1 pods running; 0 pods succeeded; 0 pods failed; 1 pods crash again and again"
	if c := meta.FindStatusCondition(d.Status.Conditions, string(v1beta2.PodsReady)); c == nil || c.Message != want {
		t.Errorf("got %v, want %s", c, want)
	}
}
