// SPDX-License-Identifier: Apache-2.0

package appwrapper

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestFromWhenOnSomethingElseMayHaveEndedAPod(t *testing.T) {
	ended := func(code int32, at int64) []corev1.ContainerStatus {
		return []corev1.ContainerStatus{{Name: "c", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code, FinishedAt: metav1.Unix(at, 0)}}}}
	}
	created, deleted := metav1.Unix(1000, 0), metav1.Unix(2000, 0)
	for sentence, tc := range map[string]struct {
		edit func(*corev1.Pod)
		want time.Time
	}{
		"nothing happened": {func(*corev1.Pod) {}, time.Time{}},
		"its node shuts down": {func(p *corev1.Pod) {
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: corev1.PodReasonTerminationByKubelet, LastTransitionTime: metav1.Unix(1900, 0)}}
		}, created.Time},
		"it was evicted when it had succeeded": {func(p *corev1.Pod) {
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Unix(1970, 0)}}
			p.Status.Phase, p.Status.ContainerStatuses = corev1.PodSucceeded, ended(0, 1970)
		}, time.Time{}},
		"it was evicted, and exited with 0": {func(p *corev1.Pod) {
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Unix(1970, 0)}}
			p.Status.Phase, p.Status.ContainerStatuses = corev1.PodSucceeded, ended(0, 1971)
		}, created.Time},
		"it was not disrupted in the end": {func(p *corev1.Pod) {
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.DisruptionTarget, Status: corev1.ConditionFalse}}
		}, time.Time{}},
		"it was deleted with 30 seconds to end": {func(p *corev1.Pod) { p.DeletionTimestamp, p.DeletionGracePeriodSeconds = &deleted, new(int64(30)) }, time.Unix(1971, 0)},
		"it was deleted at once":                {func(p *corev1.Pod) { p.DeletionTimestamp, p.DeletionGracePeriodSeconds = &deleted, new(int64(0)) }, time.Unix(2001, 0)},
		"it was deleted, and exited with 0": {func(p *corev1.Pod) {
			p.DeletionTimestamp, p.DeletionGracePeriodSeconds = &deleted, new(int64(30))
			p.Status.Phase, p.Status.ContainerStatuses = corev1.PodSucceeded, ended(0, 1975)
		}, time.Unix(1971, 0)},
		"it was deleted when it had succeeded": {func(p *corev1.Pod) {
			p.DeletionTimestamp, p.DeletionGracePeriodSeconds = &deleted, new(int64(30))
			p.Status.Phase, p.Status.ContainerStatuses = corev1.PodSucceeded, ended(0, 1970)
		}, time.Time{}},
		"it was deleted when it had failed": {func(p *corev1.Pod) {
			p.DeletionTimestamp, p.DeletionGracePeriodSeconds = &deleted, new(int64(0))
			p.Status.Phase, p.Status.ContainerStatuses = corev1.PodFailed, ended(1, 1999)
		}, time.Time{}},
	} {
		p := pod("p", corev1.PodRunning)
		p.CreationTimestamp = created
		tc.edit(p)
		if got := interruptedAt(p); !got.Equal(tc.want) {
			t.Errorf("%s: %s, not %s", sentence, got, tc.want)
		}
		if got := interruptedAt(newInterner().slimPod(p)); !got.Equal(tc.want) {
			t.Errorf("%s, in the cache: %s, not %s", sentence, got, tc.want)
		}
	}
}
