// SPDX-License-Identifier: Apache-2.0

package nodehealth

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestRejection(t *testing.T) {
	ended := []corev1.ContainerStatus{{State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 137}}}}
	waiting := []corev1.ContainerStatus{{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{}}}}
	for sentence, tc := range map[string]struct {
		status corev1.PodStatus
		want   bool
	}{
		"a device that is not given":                {corev1.PodStatus{Phase: corev1.PodFailed, Reason: "UnexpectedAdmissionError"}, true},
		"so is one that is taken after a restart":   {corev1.PodStatus{Phase: corev1.PodFailed, Reason: "UnexpectedAdmissionError", ContainerStatuses: ended}, true},
		"a device that is not there":                {corev1.PodStatus{Phase: corev1.PodFailed, Reason: "OutOfnvidia.com/gpu"}, true},
		"a node that shuts down":                    {corev1.PodStatus{Phase: corev1.PodFailed, Reason: "NodeShutdown"}, true},
		"a full disk before it began":               {corev1.PodStatus{Phase: corev1.PodFailed, Reason: "Evicted", ContainerStatuses: waiting}, true},
		"a full disk later may be its own":          {corev1.PodStatus{Phase: corev1.PodFailed, Reason: "Evicted", ContainerStatuses: ended}, false},
		"or that of its init container":             {corev1.PodStatus{Phase: corev1.PodFailed, Reason: "Evicted", InitContainerStatuses: ended}, false},
		"what no node accepts is the pod's fault":   {corev1.PodStatus{Phase: corev1.PodFailed, Reason: "SysctlForbidden"}, false},
		"a failure without a reason is the pod's":   {corev1.PodStatus{Phase: corev1.PodFailed}, false},
		"a pod that has not failed is not rejected": {corev1.PodStatus{Phase: corev1.PodPending, Reason: "NodeAffinity"}, false},
	} {
		t.Run(sentence, func(t *testing.T) {
			cause, got := Rejection(&corev1.Pod{Status: tc.status})
			if got != tc.want || got && cause.String() != "PodRejected "+tc.status.Reason {
				t.Errorf("got %q, %t", cause, got)
			}
		})
	}
}
