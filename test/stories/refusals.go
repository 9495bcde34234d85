// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"time"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
)

var refusals = []Story{
	tell("a component that is refused for a while", front, job("train", 1).unanswered("the webhook is not reachable")).admitted().
		after(10*time.Second).then("API server", "is well again", permitted).
		after(10 * time.Second),

	tell("a Job ends and cleans itself up while another is refused", job("first", 1), job("second", 1).refused()).runs().
		after(5*time.Second).then("owner", "Job first is complete", completes(0)).
		after(5*time.Second).then("owner", "Job first reaches its own time to live", removed(0)).
		after(time.Second).then("admin", "makes room", permitted).
		after(20*time.Second).podsStart().
		after(time.Hour).then("owner", "Job second is complete", completes(1)),

	tell("a webhook does not answer for longer than the grace", front, job("train", 1).unanswered("the webhook is not reachable")).
		with(v1beta2.RetryLimitAnnotation, "0").admitted().
		after(85*time.Second).then("API server", "is well again", permitted).
		after(20 * time.Second).podsStart(),

	tell("a webhook forbids a component and says so again", front, job("train", 1).denied("no such queue")).admitted().after(time.Minute),

	tell("a webhook forbids a component for a moment", front, job("train", 1).denied("no such queue")).admitted().
		after(10*time.Second).then("admin", "makes the queue", permitted).
		after(10 * time.Second),

	tell("a component that is refused for too long", front, job("train", 1).refused()).
		with(v1beta2.RetryLimitAnnotation, "0").admitted().after(2 * time.Minute),

	tell("a component that is refused and no controller runs for a while", front, job("train", 1).refused()).
		with(v1beta2.RetryLimitAnnotation, "0").admitted().
		after(5*time.Second).controllerStops().
		after(time.Minute).then("admin", "makes room", permitted).
		after(time.Second).controllerStarts().
		after(5 * time.Second).podsStart(),

	tell("a component that is refused for good", front, job("train", 1).refusedForGood("spec.template is invalid")).admitted(),

	tell("what can never run does not wait for quota", front, job("train", 1).refusedForGood("spec.template is invalid")).
		after(time.Minute),
	tell("what is refused for a while may wait for quota", front, job("train", 1).refused()).
		after(time.Minute).then("admin", "makes room", permitted).
		after(time.Second).admitted().podsStart(),
	tell("a webhook forbids what waits for quota", job("train", 1).denied("no such queue")).
		after(time.Minute),
}
