// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
)

var migrations = []Story{
	tell("migration off an unhealthy node without a retry", job("train", 2)).
		with(v1beta2.RetryLimitAnnotation, "0").runs().
		after(time.Hour).nodeTurnsUnhealthy().
		after(2*time.Minute).podsStart().
		after(time.Hour).then("owner", "the Job is complete", completes(0)),

	tell("migration of a pod that has not started yet", job("train", 2)).admitted().
		after(10 * time.Second).nodeTurnsUnhealthy().
		after(2 * time.Minute).podsStart(),

	tell("migration to where there is no room yet", job("train", 2)).
		with(v1beta2.RetryLimitAnnotation, "0").runs().
		after(time.Hour).nodeTurnsUnhealthy().
		after(10*time.Minute).podsStart().
		after(time.Hour).then("owner", "the Job is complete", completes(0)),

	tell("migration up to the limit", job("train", 2)).
		migratingAtMost(1).runs().
		after(time.Hour).nodeTurnsUnhealthy().
		after(2*time.Minute).podsStart().
		after(time.Hour).nodeTurnsUnhealthy().
		after(time.Hour).nodeRecovers().
		after(time.Hour).nodeTurnsUnhealthy().
		after(time.Hour).then("owner", "the Job is complete", completes(0)),

	tell("migration that is not possible ends with the failure of the GPU", job("train", 2)).
		migratingAtMost(0).runs().
		after(time.Hour).nodeTurnsUnhealthy().
		after(time.Hour).then("kubelet", "a pod fails", aPodFails).
		after(2 * time.Minute),

	tell("suspension while it leaves an unhealthy node", job("train", 2)).runs().
		after(time.Hour).nodeTurnsUnhealthy().
		after(time.Minute).evicted().
		after(time.Hour).runs(),

	tell("success on an unhealthy node", job("train", 2)).runs().
		after(time.Hour).then("owner", "the Job is complete, and its pods have not ended", func(w World) { w.Report(0, true) }).
		nodeTurnsUnhealthy().
		then("kubelet", "the pods end", func(w World) { w.EndPods(0, corev1.PodSucceeded) }),
}
