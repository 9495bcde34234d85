// SPDX-License-Identifier: Apache-2.0

package nodehealth

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestEviction(t *testing.T) {
	since := time.Unix(1000, 0)
	for sentence, tc := range map[string]struct {
		condition corev1.PodCondition
		want      string
	}{
		"a taint": {corev1.PodCondition{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: "DeletionByTaintManager"},
			"PodEvicted DeletionByTaintManager"},
		"a drain": {corev1.PodCondition{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: "EvictionByEvictionAPI"},
			"PodEvicted EvictionByEvictionAPI"},
		"the end of its node": {corev1.PodCondition{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: "DeletionByPodGC"},
			"NodeGone deleted"},
		"a pod that is more important is no fault of the node": {
			corev1.PodCondition{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: corev1.PodReasonPreemptionByScheduler}, ""},
		"what the pod uses may be too much": {
			corev1.PodCondition{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: corev1.PodReasonTerminationByKubelet}, ""},
		"an eviction that was given up": {
			corev1.PodCondition{Type: corev1.DisruptionTarget, Status: corev1.ConditionFalse, Reason: "EvictionByEvictionAPI"}, ""},
		"another condition": {
			corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionTrue, Reason: "EvictionByEvictionAPI"}, ""},
	} {
		t.Run(sentence, func(t *testing.T) {
			pod := &corev1.Pod{}
			tc.condition.LastTransitionTime = metav1.Time{Time: since}
			pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue}, tc.condition}
			cause, at, evicted := Eviction(pod)
			if evicted != (tc.want != "") || evicted && (cause.String() != tc.want || !at.Equal(since)) {
				t.Errorf("got %q at %s, %t", cause, at, evicted)
			}
		})
	}
	if _, _, evicted := Eviction(&corev1.Pod{}); evicted {
		t.Error("a pod is evicted that has no condition")
	}
}
