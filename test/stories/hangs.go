// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"time"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
)

var hangs = []Story{
	tell("a job that hangs", job("train", 2)).
		with(v1beta2.NoProgressGracePeriodDurationAnnotation, "10m").runs().
		after(time.Hour).hangs().
		after(5*time.Minute).then("kubelet", "the pod is ready again", World.GoOn).
		after(time.Hour).hangs().
		after(12*time.Minute).podsStart().
		after(time.Hour).then("owner", "the Job is complete", completes(0)),

	tell("a job that hangs without a retry left", job("train", 1)).
		with(v1beta2.NoProgressGracePeriodDurationAnnotation, "10m").with(v1beta2.RetryLimitAnnotation, "0").runs().
		after(time.Hour).hangs().
		after(time.Hour),

	tell("a job that may hang", job("train", 1)).runs().
		after(time.Hour).hangs().
		after(24*time.Hour).then("owner", "the Job is complete", completes(0)),
}
