// SPDX-License-Identifier: Apache-2.0

package appwrapper

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The cache keeps what tells of a crash loop, and a change of it wakes.
func TestCrashLoopsOfPods(t *testing.T) {
	since := metav1.Unix(1000, 0)
	crashed := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 3}}
	ended := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}
	running := corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: since}}
	ranFor := func(d time.Duration) corev1.ContainerState {
		return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{StartedAt: since, FinishedAt: metav1.NewTime(since.Add(d))}}
	}
	waiting := func(reason string) corev1.ContainerState {
		return corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason}}
	}
	for sentence, tc := range map[string]struct {
		phase  corev1.PodPhase
		status corev1.ContainerStatus
		want   string
		since  time.Time
	}{
		"it waits after a crash":     {corev1.PodRunning, corev1.ContainerStatus{RestartCount: 3, State: waiting(backOff), LastTerminationState: crashed}, "c", time.Time{}},
		"it waits for its image":     {corev1.PodRunning, corev1.ContainerStatus{State: waiting("ContainerCreating")}, "", time.Time{}},
		"it runs again":              {corev1.PodRunning, corev1.ContainerStatus{RestartCount: 1, State: running, LastTerminationState: crashed}, "c", since.Time},
		"it runs":                    {corev1.PodRunning, corev1.ContainerStatus{State: running}, "", time.Time{}},
		"it runs again after an end": {corev1.PodRunning, corev1.ContainerStatus{RestartCount: 1, State: running, LastTerminationState: ended}, "", time.Time{}},
		"after a short run":          {corev1.PodRunning, corev1.ContainerStatus{RestartCount: 1, State: running, LastTerminationState: ranFor(time.Minute)}, "c", since.Time},
		"after a long run":           {corev1.PodRunning, corev1.ContainerStatus{RestartCount: 1, State: running, LastTerminationState: ranFor(time.Hour)}, "", time.Time{}},
		"it has crashed once more":   {corev1.PodRunning, corev1.ContainerStatus{RestartCount: 1, State: crashed, LastTerminationState: crashed}, "c", time.Time{}},
		"it has ended":               {corev1.PodRunning, corev1.ContainerStatus{RestartCount: 1, State: ended, LastTerminationState: crashed}, "", time.Time{}},
		"its pod starts it no more":  {corev1.PodRunning, corev1.ContainerStatus{State: crashed}, "", time.Time{}},
		"its image is gone":          {corev1.PodRunning, corev1.ContainerStatus{RestartCount: 1, State: waiting("ImagePullBackOff"), LastTerminationState: crashed}, "c", time.Time{}},
		"its pod has failed":         {corev1.PodFailed, corev1.ContainerStatus{RestartCount: 3, State: waiting(backOff)}, "", time.Time{}},
	} {
		t.Run(sentence, func(t *testing.T) {
			p := pod("p", tc.phase)
			tc.status.Name = "c"
			p.Status.ContainerStatuses = []corev1.ContainerStatus{tc.status}
			s := p.DeepCopy() // as a side-car
			s.Status.ContainerStatuses, s.Status.InitContainerStatuses = []corev1.ContainerStatus{{State: running}}, p.Status.ContainerStatuses
			for what, p := range map[string]*corev1.Pod{"whole": p, "slim": slim(p).(*corev1.Pod), "slimmed twice": slim(slim(p)).(*corev1.Pod), "side-car": s, "slim side-car": slim(s).(*corev1.Pod)} {
				if got, since := crashLoopOf(p); got != tc.want || !since.Equal(tc.since) {
					t.Errorf("%s: %q since %s", what, got, since)
				}
			}
			if changes := relevantOf(p) != relevantOf(pod("p", tc.phase)); changes != (tc.want != "") {
				t.Errorf("it wakes: %t", changes)
			}
		})
	}
}
