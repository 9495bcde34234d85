// SPDX-License-Identifier: Apache-2.0

package stories

import "time"

var suspensions = []Story{
	tell("suspension by Kueue while running", job("train", 2)).runs().
		after(time.Hour).evicted().
		after(time.Hour).admitted().podsStart(),

	tell("suspension while a pod is stuck holds the quota", job("train", 2)).runs().
		after(time.Hour).nodeIsLost().evicted().
		after(time.Minute).nodeIsBack(),

	tell("suspension during the pause between two attempts", job("train", 1)).runs().
		after(time.Minute).then("owner", "the Job has failed", fails(1)).
		after(30 * time.Second).evicted(),
}
