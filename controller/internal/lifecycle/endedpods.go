// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Pods that have ended by themselves are not missing, whether or not their objects exist:
//
//	an operator replaces what ends    all that have ended are missing
//	a Job in waves                    a succeeded pod stands in for the next one during the warmup grace; after that, as
//	                                  many have to run as still have to succeed
//	a work queue                      once one has succeeded, nobody waits for the others
//	a Job that tolerates failures     failed pods are not missing, unless they were tried again
//	a JobSet                          the pods of Jobs that have succeeded are not missing
//	all others                        each has to succeed once
//
// The component itself reports some of that, and the status remembers the rest.

// addEnded counts the pods of a set that have ended and are not missing.
func (v *view) addEnded(set *podSet) {
	if set.replaced {
		set.succeeded = 0
		return
	}
	v.addReported(set)
	switch ofJobs := v.Components[set.component].Ended.Jobs[set.ends.Job] * set.ends.Pods; {
	case set.ends.Completions > 0:
		v.addWave(set)
	case set.ends.WorkQueue && max(set.succeeded, ofJobs) > 0:
		set.expected = min(set.expected, set.present())
	case set.ends.Early && set.expected > set.ends.Pods:
		set.givenUp += ofJobs // pods of other Jobs may have succeeded, and nobody knows of which Job a pod is
	default:
		set.succeeded = max(set.succeeded, ofJobs)
	}
	if set.ends.Tolerant { // what was tried again is there
		set.givenUp += min(set.failed, max(0, set.expected-set.present()))
	}
}

// addReported adds what the status remembers, and what a component with one pod set reports. A pod that is made in
// place of one that is remembered runs again.
func (v *view) addReported(set *podSet) {
	status, ended := v.status.ComponentStatus[set.component], v.Components[set.component].Ended
	if set.index < len(status.SucceededPods) {
		set.succeeded += min(int(status.SucceededPods[set.index]), max(0, set.expected-set.present()))
	}
	if len(status.PodSets) == 1 {
		set.succeeded, set.givenUp = max(set.succeeded, ended.Succeeded), ended.GivenUp
	}
}

// addWave: of a Job in waves, as many pods have to run as still have to succeed, if they are fewer than run at the same
// time. A pod that has succeeded stands in for the next one, until that should have started.
func (v *view) addWave(set *podSet) {
	left := set.ends.Completions - max(set.succeeded, v.Components[set.component].Ended.Succeeded) - set.givenUp
	set.givenUp, set.succeeded = 0, max(0, set.expected-max(0, left))
	for _, p := range v.Pods {
		until := earlier(p.Ended, v.now).Add(v.Policy.WarmupGrace)
		if p.Component != set.component || p.Foreign || p.Phase != corev1.PodSucceeded || !v.now.Before(until) {
			continue
		}
		if set.started() < set.expected {
			set.succeeded++
			set.due = firstOf(set.due, until)
		}
	}
}

// firstOf ignores zero.
func firstOf(a, b time.Time) time.Time {
	if a.IsZero() || b.Before(a) {
		return b
	}
	return a
}
