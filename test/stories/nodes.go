// SPDX-License-Identifier: Apache-2.0

package stories

import "time"

var nodes = []Story{
	tell("a pod that is lost after warm-up", custom("train", 2)).runs().
		after(time.Hour).then("kubelet", "a pod is evicted", func(w World) { w.LosePod(0) }).
		after(30*time.Second).podsStart().
		after(time.Hour).then("kubelet", "a pod is evicted", func(w World) { w.LosePod(0) }).
		after(2 * time.Minute),

	tell("a pod is evicted from its node and replaced in time", job("train", 2).replacing()).runs().
		after(time.Hour).evictsAPod().
		after(20*time.Second).podsStart().
		after(time.Hour).then("owner", "the Job is complete", completes(0)),

	tell("a pod is evicted from its node and its replacement finds no other", job("train", 2).replacing()).runs().
		after(time.Hour).evictsAPod().
		after(3 * time.Minute).podsStart(),

	tell("a pod is evicted from its node and its Job gives up", job("train", 2)).runs().
		after(time.Hour).then("node", "evicts a pod, and the Job fails", func(w World) {
		w.EvictPod(0)
		w.Report(0, false)
	}).
		after(2 * time.Minute),

	tell("a node is lost and a pod with it", job("train", 2).replacing()).runs().
		after(time.Hour).nodeIsLost().
		after(5*time.Minute).evictsAPod().
		after(13*time.Minute).podsStart().
		after(time.Hour).then("owner", "the Job is complete", completes(0)),

	tell("a node is lost and the Job goes on without it", job("train", 2).replacing()).runs().
		after(time.Hour).nodeIsLost().
		after(5*time.Minute).evictsAPod().
		after(20*time.Second).podsStart().
		after(time.Hour).then("owner", "the Job is complete", completes(0)).
		after(20 * time.Minute),

	tell("a node dies and the work leaves it", job("train", 2)).runs().
		after(time.Hour).nodeIsLost().
		after(40*time.Second).nodeIsNotReady().
		after(61*time.Second).
		after(13*time.Minute).podsStart().
		after(time.Hour).then("owner", "the Job is complete", completes(0)),

	tell("a node rejects a pod", job("train", 2)).admitted().
		then("kubelet", "rejects a pod, and the Job fails", func(w World) {
			w.RejectPod(0)
			w.Report(0, false)
		}).
		after(2*time.Minute).podsStart().
		after(time.Hour).then("owner", "the Job is complete", completes(0)),

	tell("a node is not ready for a moment", job("train", 2)).runs().
		after(time.Hour).nodeIsNotReady().
		after(30 * time.Second).nodeIsBack().
		after(10 * time.Minute),

	tell("a node is lost for a moment", job("train", 2).replacing()).runs().
		after(time.Hour).nodeIsLost().
		after(time.Minute).nodeIsBack().
		after(10 * time.Minute),
}
