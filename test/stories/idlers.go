// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"time"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
)

var idlers = []Story{
	tell("a notebook that is left alone", job("notebook", 1)).
		with(v1beta2.IdleGracePeriodDurationAnnotation, "4h").runs().
		after(time.Hour).idles().
		after(time.Hour).works().
		after(time.Hour).idles().
		after(3*time.Hour).works().
		after(time.Hour).idles().
		after(5*time.Hour).
		after(time.Hour).admitted().podsStart().
		after(time.Hour).then("owner", "the Job is complete", completes(0)),

	tell("one of two pods is idle", job("train", 1), job("show", 1)).
		with(v1beta2.IdleGracePeriodDurationAnnotation, "4h").runs().
		after(time.Hour).idles().
		after(24*time.Hour).then("owner", "the Jobs are complete", func(w World) { completes(0)(w); completes(1)(w) }),

	tell("nobody says any more that the pods are idle", job("notebook", 1)).
		with(v1beta2.IdleGracePeriodDurationAnnotation, "4h").runs().
		after(time.Hour).idles().
		after(3*time.Hour).then("admin", "stops whoever watches the devices", World.StopWatcher).
		after(24*time.Hour).works().
		after(time.Minute).then("admin", "starts whoever watches the devices", World.StartWatcher).
		after(time.Hour).then("owner", "the Job is complete", completes(0)),

	tell("the controller is away when the notice is due", job("notebook", 1)).
		with(v1beta2.IdleGracePeriodDurationAnnotation, "4h").runs().
		after(time.Hour).idles().controllerStops().
		after(6 * time.Hour).controllerStarts().
		after(time.Hour).
		after(time.Hour),
}
