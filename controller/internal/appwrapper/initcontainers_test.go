// SPDX-License-Identifier: Apache-2.0

package appwrapper

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The cache keeps since when a pod prepares, and that it stops wakes.
func TestInitContainersOfPods(t *testing.T) {
	at := func(seconds int64) metav1.Time { return metav1.Unix(1000+seconds, 0) }
	running := func(name string, since int64, restarts int32) corev1.ContainerStatus {
		return corev1.ContainerStatus{Name: name, RestartCount: restarts, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: at(since)}}}
	}
	ended := func(code int32, when int64) corev1.ContainerStatus {
		return corev1.ContainerStatus{Name: "ended", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code, FinishedAt: at(when)}}}
	}
	waits := func(name string, restarts int32) corev1.ContainerStatus {
		return corev1.ContainerStatus{Name: name, RestartCount: restarts, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: backOff}}}
	}
	var none time.Time
	for sentence, tc := range map[string]struct {
		phase        corev1.PodPhase
		statuses     []corev1.ContainerStatus
		since, ended time.Time
	}{
		"one runs":                         {corev1.PodPending, []corev1.ContainerStatus{running("copy", 5, 0)}, at(5).Time, none},
		"one runs after two others":        {corev1.PodPending, []corev1.ContainerStatus{ended(0, 5), ended(0, 7), running("copy", 8, 0)}, at(8).Time, at(7).Time},
		"all have ended":                   {corev1.PodPending, []corev1.ContainerStatus{ended(0, 5)}, none, at(5).Time},
		"one has failed":                   {corev1.PodPending, []corev1.ContainerStatus{ended(1, 5)}, at(2).Time, none},
		"one waits after it has failed":    {corev1.PodPending, []corev1.ContainerStatus{waits("copy", 0)}, at(2).Time, none},
		"one runs again":                   {corev1.PodPending, []corev1.ContainerStatus{running("copy", 9, 1)}, at(2).Time, none},
		"one runs again after another one": {corev1.PodPending, []corev1.ContainerStatus{ended(0, 5), running("copy", 9, 3)}, at(5).Time, at(5).Time},
		"a side-car waits after a crash":   {corev1.PodPending, []corev1.ContainerStatus{waits("proxy", 3)}, none, none},
		"it is a side-car":                 {corev1.PodPending, []corev1.ContainerStatus{running("proxy", 5, 0)}, none, none},
		"none has begun":                   {corev1.PodPending, []corev1.ContainerStatus{{Name: "copy"}}, none, none},
		"the clock of its node is behind":  {corev1.PodPending, []corev1.ContainerStatus{running("copy", -500, 0)}, at(0).Time, none},
		"its containers run":               {corev1.PodRunning, []corev1.ContainerStatus{ended(0, 5)}, none, none},
		"it has failed while they ran":     {corev1.PodFailed, []corev1.ContainerStatus{running("copy", 5, 0)}, none, none},
		"a side-car crashes beside it":     {corev1.PodPending, []corev1.ContainerStatus{waits("proxy", 3), running("copy", 5, 0)}, at(5).Time, none},
		"a side-car runs beside what runs": {corev1.PodPending, []corev1.ContainerStatus{running("proxy", 3, 0), running("copy", 5, 0)}, at(5).Time, none},
	} {
		t.Run(sentence, func(t *testing.T) {
			p := pod("p", tc.phase)
			p.CreationTimestamp, p.Status.StartTime = at(0), new(at(2))
			always := corev1.ContainerRestartPolicyAlways
			p.Spec.InitContainers = []corev1.Container{{Name: "copy"}, {Name: "proxy", RestartPolicy: &always}}
			waiting := relevantOf(p)
			p.Status.InitContainerStatuses = tc.statuses
			for what, p := range map[string]*corev1.Pod{"whole": p, "slim": slim(p).(*corev1.Pod), "slimmed twice": slim(slim(p)).(*corev1.Pod)} {
				if got := (&observation{}).podOf(p); !got.InitSince.Equal(tc.since) || !got.InitEnded.Equal(tc.ended) {
					t.Errorf("%s: since %s, ended %s", what, got.InitSince, got.InitEnded)
				}
			}
			crash, _ := crashLoopOf(p)
			if wakes := relevantOf(p) != waiting; wakes != (tc.since != none || crash != "") {
				t.Errorf("it wakes: %t", wakes)
			}
		})
	}
}

func TestCrashLoopsOfInitContainers(t *testing.T) {
	since := metav1.Unix(1000, 0)
	failed := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 3}}
	for sentence, tc := range map[string]struct {
		name   string
		status corev1.ContainerStatus
		want   string
		since  time.Time
	}{
		"it runs for the first time":                             {"copy", corev1.ContainerStatus{State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: since}}}, "", time.Time{}},
		"it waits after it has failed":                           {"copy", corev1.ContainerStatus{RestartCount: 3, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: backOff}}}, "copy", time.Time{}},
		"it runs again":                                          {"copy", corev1.ContainerStatus{RestartCount: 1, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: since}}, LastTerminationState: failed}, "copy", since.Time},
		"it has succeeded in the end":                            {"copy", corev1.ContainerStatus{RestartCount: 1, State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}, LastTerminationState: failed}, "", time.Time{}},
		"it is a side-car, before which the others do not start": {"proxy", corev1.ContainerStatus{RestartCount: 3, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: backOff}}}, "proxy", time.Time{}},
	} {
		t.Run(sentence, func(t *testing.T) {
			p := pod("p", corev1.PodPending)
			always := corev1.ContainerRestartPolicyAlways
			p.Spec.InitContainers = []corev1.Container{{Name: "copy"}, {Name: "proxy", RestartPolicy: &always}}
			tc.status.Name = tc.name
			p.Status.InitContainerStatuses = []corev1.ContainerStatus{tc.status}
			for what, p := range map[string]*corev1.Pod{"whole": p, "slim": slim(p).(*corev1.Pod), "slimmed twice": slim(slim(p)).(*corev1.Pod)} {
				if got, since := crashLoopOf(p); got != tc.want || !since.Equal(tc.since) {
					t.Errorf("%s: %q since %s", what, got, since)
				}
			}
		})
	}
}
