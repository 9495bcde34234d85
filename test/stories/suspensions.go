// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"time"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/quotareason"
)

var suspensions = []Story{
	tell("waiting for quota, and its status says why", job("train", 1)).waits(quotareason.WaitingForQuota).
		after(5 * time.Second).
		after(time.Minute).waits(quotareason.ExceedsMaxQuota).
		after(time.Hour).runs(),

	tell("a creation that arrives after the suspension", job("train", 2), front).runs().
		after(time.Hour).evicted().
		after(time.Minute).createdLate(0).
		after(time.Hour).admitted().podsStart(),

	tell("a creation that arrives while no controller runs, and then quota", job("train", 2)).runs().
		after(time.Hour).evicted().
		after(time.Minute).controllerStops().
		then("paused controller", "creates the Job, and Kueue admits the work", func(w World) { w.CreateLate(0); w.Admit() }).
		after(time.Minute).controllerStarts().
		after(time.Minute).podsStart(),

	tell("a creation that arrives after the work has failed", job("train", 1)).
		with(v1beta2.RetryLimitAnnotation, "0").runs().
		after(time.Minute).then("owner", "the Job has failed", fails(1)).
		after(time.Minute).createdLate(0).
		after(time.Hour),

	tell("suspension by Kueue while running", job("train", 2)).runs().
		after(time.Hour).evicted().
		after(time.Hour).admitted().podsStart(),

	tell("suspension after a checkpoint", job("train", 2)).
		with(v1beta2.LastCheckpointAnnotation, "2030-01-01T12:50:00Z").runs().
		after(time.Hour).evicted().
		after(time.Hour).admitted().
		after(5*time.Second).podsStart().
		after(time.Hour).then("owner", "the Job is complete", completes(0)),

	tell("suspension while a pod is stuck holds the quota", job("train", 2)).runs().
		after(time.Hour).nodeIsLost().evicted().
		after(time.Minute).nodeIsBack(),

	tell("suspension during the pause between two attempts", job("train", 1)).runs().
		after(time.Minute).then("owner", "the Job has failed", fails(1)).
		after(30 * time.Second).evicted(),

	tell("suspension before the controller has looked", job("train", 2)).
		then("Kueue", "admits it and evicts it at once", func(w World) { w.Admit(); w.Evict() }).
		after(time.Minute).runs(),

	tell("suspension while a component is refused", front, job("train", 1).refused()).admitted().
		after(10*time.Second).evicted().
		after(time.Minute).then("admin", "makes room", permitted).runs(),

	tell("suspension while an attempt is being removed", job("train", 2)).runs().
		after(time.Minute).nodeIsLost().then("owner", "the Job has failed", reportsFailure).
		after(time.Minute).evicted().
		after(time.Minute).nodeIsBack(),

	tell("suspension that is taken back while it is carried out", job("train", 2)).runs().
		after(time.Hour).nodeIsLost().evicted().
		after(10*time.Second).then("user", "sets spec.suspend to false", World.Admit).
		after(10 * time.Second).nodeIsBack().podsStart(),

	tell("suspension of what a finalizer keeps", job("train", 2), front.held()).runs().
		after(time.Hour).evicted().
		after(time.Hour).then("owner", "lets the Service go", func(w World) { w.Free(1) }).
		after(time.Minute).runs(),

	tell("suspension of what a finalizer keeps, and quota again", job("train", 2), front.held()).runs().
		after(time.Hour).evicted().
		after(time.Minute).admitted().
		after(20 * time.Minute),

	tell("suspension after success", job("train", 1)).
		with(v1beta2.SuccessTTLAnnotation, "1h").runs().
		after(time.Hour).then("owner", "the Job is complete", completes(0)).
		after(time.Minute).evicted().
		after(2 * time.Hour),

	tell("suspension ends the hold on failure", job("train", 1)).
		with(v1beta2.RetryLimitAnnotation, "0").
		with(v1beta2.DeletionOnFailureGracePeriodAnnotation, "8h").runs().
		after(time.Minute).then("owner", "the Job has failed", fails(1)).
		after(time.Hour).evicted(),

	tell("suspension while being deleted", job("train", 2)).runs().
		after(time.Hour).nodeIsLost().deleted().
		after(10 * time.Second).evicted().
		after(time.Minute).nodeIsBack(),
}
