// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"time"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
)

var surpluses = []Story{
	tell("surplus pods for longer than the failure grace", job("train", 2)).runs().
		after(time.Hour).podIsAdded().
		after(13*time.Minute).podsStart().
		after(time.Hour).then("owner", "the Job is complete", completes(0)),

	tell("surplus pods without a retry left", job("train", 2)).
		with(v1beta2.RetryLimitAnnotation, "0").runs().
		after(time.Hour).podIsAdded().
		after(time.Hour),

	tell("surplus pods that go in time", job("train", 2)).runs().
		after(time.Hour).podIsAdded().
		after(30*time.Second).then("member", "deletes the pod", World.RemoveAddedPods).
		after(time.Hour).then("owner", "the Job is complete", completes(0)),
}
