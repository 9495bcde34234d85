// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"time"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
)

var failures = []Story{
	tell("retry then success", job("train", 1)).admitted().
		after(5*time.Second).podsStart().
		after(time.Minute).then("owner", "the Job has failed", fails(1)).
		after(90*time.Second).
		after(5*time.Second).podsStart().
		after(time.Hour).then("owner", "the Job is complete", completes(0)),

	tell("retry without a pause", job("train", 1)).
		with(v1beta2.RetryPausePeriodDurationAnnotation, "0s").runs().
		after(time.Minute).then("owner", "the Job has failed", fails(1)).
		after(5 * time.Second).podsStart(),

	tell("retries exhausted", job("train", 1)).
		with(v1beta2.RetryLimitAnnotation, "1").
		with(v1beta2.DeletionOnFailureGracePeriodAnnotation, "10m").admitted().
		after(5*time.Second).podsStart().
		after(time.Minute).then("owner", "the Job has failed", fails(1)).
		after(90*time.Second).
		after(5*time.Second).podsStart().
		after(time.Minute).then("owner", "the Job has failed", fails(1)).
		after(15 * time.Minute),

	tell("a terminal exit code ends it at once", job("train", 1)).
		with(v1beta2.TerminalExitCodesAnnotation, "13").runs().
		after(time.Minute).then("owner", "the Job has failed with exit code 13", fails(13)),

	tell("failed pods that are replaced do no harm", job("train", 2).replacing()).admitted().
		after(5*time.Second).podsStart().
		after(time.Minute).then("kubelet", "a pod fails", aPodFails).
		after(20*time.Second).podsStart().
		after(time.Hour).then("owner", "the Job is complete", completes(0)),

	tell("a pod that fails and is not replaced", custom("train", 2)).runs().
		after(time.Hour).then("kubelet", "a pod fails", aPodFails).
		after(2 * time.Minute),

	tell("pods that never start", job("train", 2)).
		with(v1beta2.RetryLimitAnnotation, "0").admitted().after(6 * time.Minute),

	tell("a component that somebody removes", job("train", 1), job("watch", 1)).runs().
		after(time.Minute).then("user", "deletes Job watch", removed(1)),

	tell("a retry that waits for what a finalizer keeps", job("train", 1), front.held()).runs().
		after(time.Minute).then("owner", "the Job has failed", fails(1)).
		after(5*time.Minute).then("owner", "lets the Service go", func(w World) { w.Free(1) }).
		after(90 * time.Second).podsStart(),

	tell("a retry that a finalizer prevents", job("train", 1), front.held()).runs().
		after(time.Minute).then("owner", "the Job has failed", fails(1)).
		after(20 * time.Minute),

	tell("what has failed is kept to be looked at", job("train", 1), front).
		with(v1beta2.TerminalExitCodesAnnotation, "13").
		with(v1beta2.DeletionOnFailureGracePeriodAnnotation, "1h").runs().
		after(time.Minute).then("owner", "the Job has failed with exit code 13", fails(13)).
		after(30*time.Minute).then("owner", "the Job reaches its own time to live", removed(0)).
		after(time.Hour),
}
