// SPDX-License-Identifier: Apache-2.0

package lifecycle_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/internal/lifecycle"
)

// begunAt is for a pod whose init container was first started then.
func begunAt(at time.Duration) change {
	return last(func(p *lifecycle.Pod) { p.InitSince = deployedAt.Add(at) })
}

// The warmup grace is 5 minutes, and the init grace an hour.
func TestInitContainersThatRun(t *testing.T) {
	preparedAt := func(at time.Duration) change {
		return last(func(p *lifecycle.Pod) { p.InitEnded = deployedAt.Add(at) })
	}
	late, lost := startsAgain("InsufficientPodsReady"), resets("InsufficientPodsReady")
	checkRows(t, runningJob, map[string]row{
		"while they run, the pods are not late": {
			given: []change{of(0, 0, runs, pending), begunAt(time.Minute)},
			after: 7 * time.Minute,
			want:  waitsFor(54 * time.Minute),
		},
		"until the init grace of the first is over": {
			given: []change{of(0, 0, pending), begunAt(time.Minute), of(0, 0, pending), begunAt(2 * time.Minute)},
			after: 61 * time.Minute,
			want:  late,
		},
		"an annotation changes that": {
			given: []change{policy(func(p *lifecycle.Policy) { p.InitGrace = 6 * time.Minute }), of(0, 0, runs, pending), begunAt(time.Minute)},
			after: 7 * time.Minute,
			want:  late,
		},
		"the next one has the init grace from its own start": {
			given: []change{of(0, 0, runs, pending), preparedAt(50 * time.Minute), begunAt(50 * time.Minute)},
			after: 70 * time.Minute,
			want:  waitsFor(40 * time.Minute),
		},
		"what follows them has the warmup grace": {
			given: []change{of(0, 0, runs, pending), preparedAt(7 * time.Minute)},
			after: 8 * time.Minute,
			want:  waitsFor(4 * time.Minute),
		},
		"and no more than that": {
			given: []change{of(0, 0, runs, pending), preparedAt(7 * time.Minute)},
			after: 12 * time.Minute,
			want:  late,
		},
		"another pod that does not start is late nevertheless": {
			given: []change{of(0, 0, pending), begunAt(time.Minute), of(0, 0, pending)},
			after: 5 * time.Minute,
			want:  late,
		},
		"so is one that is missing": {
			given: []change{of(0, 0, pending), begunAt(time.Minute)},
			after: time.Minute,
			want:  late,
		},
		"pods that come one by one wait for each other's": {
			given: []change{inTurn, of(0, 0, pending), begunAt(time.Minute)},
			after: 7 * time.Minute,
			want:  waitsFor(54 * time.Minute),
		},
		"a pod in place of a lost one may prepare, too": {
			given: []change{condition(v1beta2.PodsReady, metav1.ConditionFalse, v1beta2.ReasonInsufficientPodsReady, time.Hour),
				of(0, 0, runs, pending), createdAt(time.Hour), begunAt(time.Hour)},
			after: 90 * time.Minute,
			want:  waitsFor(30 * time.Minute),
		},
		"and is late in the end": {
			given: []change{condition(v1beta2.PodsReady, metav1.ConditionFalse, v1beta2.ReasonInsufficientPodsReady, time.Hour),
				of(0, 0, runs, pending), createdAt(time.Hour), begunAt(time.Hour)},
			after: 2 * time.Hour,
			want:  lost,
		},
		"a clock that is ahead does not make it longer": {
			given: []change{of(0, 0, runs, pending), begunAt(100 * time.Minute)},
			after: 7 * time.Minute,
			want:  waitsFor(time.Hour),
		},
		"one that is told to end prepares for nothing": {
			given: []change{of(0, 0, runs, corev1.PodPending), begunAt(time.Minute), last(func(p *lifecycle.Pod) { p.Terminating = true })},
			after: 5 * time.Minute,
			want:  late,
		},
	})
}

// An init container that fails is started again and again. The training operator's own fails while it waits for the
// master.
func TestInitContainersThatFail(t *testing.T) {
	fails := last(func(p *lifecycle.Pod) { p.Name, p.CrashLoop, p.Started = "p", "copy", deployedAt.Add(time.Second) })
	runsSince := func(at time.Duration) change {
		return last(func(p *lifecycle.Pod) { p.RunsSince = deployedAt.Add(at) })
	}
	crashes := outcome{Phase: v1beta2.AppWrapperRunning, Event: "CrashLoop", Conditions: map[string]string{"Unhealthy": "True CrashLoop"}, Requeue: 54 * time.Minute}
	checkRows(t, runningJob, map[string]row{
		"one that does so again and again is a crash loop": {
			given: []change{of(0, 0, runs, pending), begunAt(time.Minute), fails},
			after: 7 * time.Minute,
			want:  crashes,
		},
		"until the init grace is over": {
			given: []change{of(0, 0, runs, pending), begunAt(time.Minute), fails},
			after: 61 * time.Minute,
			want:  startsAgain("InsufficientPodsReady"),
		},
		"one that works after that is not": {
			given: []change{of(0, 0, runs, pending), begunAt(time.Minute), fails, runsSince(6 * time.Minute)},
			after: 7 * time.Minute,
			want:  waitsFor(54 * time.Minute),
		},
		"nor is one that may wait for another pod that prepares": {
			given: []change{of(0, 0, pending), begunAt(time.Minute), of(0, 0, pending), begunAt(time.Second), fails},
			after: 7 * time.Minute,
			want:  waitsFor(53*time.Minute + time.Second),
		},
		"or for one whose image comes after that": {
			given: []change{of(0, 0, pending), last(func(p *lifecycle.Pod) { p.InitEnded = deployedAt.Add(4 * time.Minute) }), of(0, 0, pending), begunAt(time.Second), fails},
			after: 7 * time.Minute,
			want:  waitsFor(2 * time.Minute),
		},
		"of another component, none does": {
			given: []change{and("second"), of(1, 0, pending, pending), begunAt(time.Minute), of(0, 0, runs, pending), begunAt(time.Minute), fails},
			after: 4 * time.Minute,
			want:  waitsFor(time.Minute),
		},
		"a pod that waits for a node is late nevertheless": {
			given: []change{of(0, 0, pending), of(0, 0, pending), begunAt(time.Second), fails},
			after: 5 * time.Minute,
			want:  startsAgain("InsufficientPodsReady"),
		},
	})
}
