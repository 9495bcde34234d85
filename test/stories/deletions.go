// SPDX-License-Identifier: Apache-2.0

package stories

import "time"

var deletions = []Story{
	tell("deletion while running", job("train", 2)).runs().
		after(time.Hour).deleted(),

	tell("deletion that leaves the components alone", job("train", 2)).runs().
		after(time.Hour).then("user", "deletes it with --cascade=orphan", func(w World) { w.Delete(true) }),

	tell("deletion before it was ever admitted", job("train", 2)).after(time.Hour).deleted(),

	tell("forced deletion", job("train", 2).held()).runs().
		after(time.Hour).nodeIsLost().deleted().
		after(20*time.Minute).then("user", "removes the finalizer of the Job", func(w World) { w.Free(0) }),
}
