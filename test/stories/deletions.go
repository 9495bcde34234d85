// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"time"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
)

var deletions = []Story{
	tell("deletion of what a finalizer keeps", job("train", 2), front.held()).runs().
		after(time.Hour).deleted().
		after(time.Hour).then("owner", "lets the Service go", func(w World) { w.Free(1) }),

	tell("deletion while running", job("train", 2)).runs().
		after(time.Hour).deleted(),

	tell("deletion that is to leave the components alone", job("train", 2)).runs().
		after(time.Hour).then("user", "deletes it with --cascade=orphan", func(w World) { w.Delete(true) }),

	tell("deletion before it was ever admitted", job("train", 2)).after(time.Hour).deleted(),

	tell("forced deletion", job("train", 2).held()).runs().
		after(time.Hour).nodeIsLost().deleted().
		after(20*time.Minute).then("user", "removes the finalizer of the Job", func(w World) { w.Free(0) }),

	tell("deletion after a suspension", job("train", 1)).runs().
		after(time.Hour).evicted().
		after(time.Hour).deleted(),

	tell("deletion while a component is refused", front, job("train", 1).refused()).admitted().
		after(10 * time.Second).deleted(),

	tell("deletion while an attempt is being removed", job("train", 2)).runs().
		after(time.Minute).nodeIsLost().then("owner", "the Job has failed", reportsFailure).
		after(4 * time.Minute).deleted().
		after(10 * time.Minute),

	tell("deletion during the pause between two attempts", job("train", 1)).runs().
		after(time.Minute).then("owner", "the Job has failed", fails(1)).
		after(30 * time.Second).deleted(),

	tell("deletion while being suspended", job("train", 2)).runs().
		after(time.Hour).nodeIsLost().evicted().
		after(4 * time.Minute).deleted().
		after(10 * time.Minute),

	tell("deletion after success", job("train", 1)).runs().
		after(time.Hour).then("owner", "the Job is complete", completes(0)).
		after(time.Hour).deleted(),

	tell("deletion ends the hold on failure", job("train", 1)).
		with(v1beta2.RetryLimitAnnotation, "0").
		with(v1beta2.DeletionOnFailureGracePeriodAnnotation, "8h").runs().
		after(time.Minute).then("owner", "the Job has failed", fails(1)).
		after(time.Hour).deleted(),

	tell("deletion twice", job("train", 2)).runs().
		after(time.Hour).nodeIsLost().deleted().
		after(time.Minute).then("user", "deletes it again", func(w World) { w.Delete(false) }).
		after(time.Minute).nodeIsBack(),
}
