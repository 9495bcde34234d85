// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
)

var successes = []Story{
	tell("success", job("train", 2)).
		with(v1beta2.SuccessTTLAnnotation, "1h").
		after(10*time.Second).admitted().
		after(5*time.Second).podsStart().
		after(3*time.Hour).then("owner", "the Job is complete", completes(0)).
		after(2 * time.Hour),

	tell("success without a queue", job("train", 1)).atOnce().podsStart().
		after(time.Hour).then("owner", "the Job is complete", completes(0)).
		after(time.Hour).deleted(),

	tell("success of a PyTorchJob whose workers live on", pyTorchJob("train", 3)).admitted().
		after(5*time.Second).podsStart().
		after(time.Hour).then("owner", "the master ends and the PyTorchJob has succeeded; the workers idle", func(w World) {
		w.Report(0, true)
		w.EndPod(0, corev1.PodSucceeded)
	}).
		after(5 * time.Minute),

	tell("a finished Job cleans itself up while another works", job("first", 1), job("second", 1), front).admitted().
		after(5*time.Second).podsStart().
		after(time.Minute).then("owner", "Job first is complete", completes(0)).
		after(10*time.Second).then("owner", "Job first reaches its own time to live", removed(0)).
		after(time.Hour).then("owner", "Job second is complete", completes(1)),
}
