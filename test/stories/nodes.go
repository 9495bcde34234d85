// SPDX-License-Identifier: Apache-2.0

package stories

import "time"

var nodes = []Story{
	tell("a pod that is lost after warm-up", custom("train", 2)).runs().
		after(time.Hour).then("kubelet", "a pod is evicted", func(w World) { w.LosePod(0) }).
		after(30*time.Second).podsStart().
		after(time.Hour).then("kubelet", "a pod is evicted", func(w World) { w.LosePod(0) }).
		after(2 * time.Minute),
}
