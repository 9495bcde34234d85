// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/mlbatch/mlbatch/controller/internal/kinds"
)

// Pods of one pod set may come later than those of another, or one by one. While they do, no grace runs out: it counts
// from the last progress of their component.
//
//	WithTheOthers   missing: admission grace from the creation of the components. Pending: warmup grace
//	OneByOne        missing or pending: warmup grace from when the last pod of the component was created or started
//	AfterTheOthers  not expected while another pod of the component is alive, nor for the admission grace after the
//	                last one ended. Then as pods that are lost
//	Aside           never expected

// takeTurn: pods are not expected whose turn has not come. others are the pod sets of their component.
func (v *view) takeTurn(set *podSet, others []podSet) {
	switch {
	case set.turn == kinds.Aside:
		set.expected = 0
	case set.turn == kinds.AfterTheOthers && set.present()+set.failed == 0:
		set.due = v.lastEnd(set.component).Add(v.Policy.AdmissionGrace)
		for _, other := range others {
			if other.alive() > 0 {
				set.due = time.Time{}
			}
		}
		if set.due.IsZero() || v.now.Before(set.due) {
			set.expected = 0
		}
	}
}

// lastEnd is when the last pod of the component ended, or when the components were created.
func (v *view) lastEnd(component int) time.Time {
	last := later(v.created(), v.LastGone)
	for _, p := range v.Pods {
		if p.Component == component {
			last = later(last, earlier(p.Ended, v.now))
		}
	}
	return last
}

// nextTurn adds to a decision to stay that pods whose turn comes have to be there by then.
func (s podSets) nextTurn(v *view, d Decision) Decision {
	for _, set := range s.sets {
		if set.due.After(v.now) {
			d = v.untilAtMost(d, set.due)
		}
	}
	return d
}

// oneByOneOnly: all pods that are missing come one by one.
func (s podSets) oneByOneOnly() bool {
	others := podSets{others: s.others}
	found := false
	for _, set := range s.sets {
		if set.turn == kinds.OneByOne {
			found, set.expected = true, 0
		}
		others.sets = append(others.sets, set)
	}
	return found && others.complete()
}

// lastProgress is when a pod was last created or started, or its program was started again.
func (v *view) lastProgress() time.Time {
	last := v.created()
	for _, p := range v.Pods {
		if !v.belongsToFinished(p) {
			for _, at := range []time.Time{p.Created, p.Started, p.RunsSince} {
				last = later(last, earlier(at, v.now))
			}
		}
	}
	return last
}

// replacementDeadline is until when pods that were ready and are lost must be replaced, and run. The failure grace
// counts from when the loss was noticed. Pods that are told to end may take the time that they have, because their
// operator may wait for that, unless their node is to blame. What is created in time has the warmup grace from its
// own creation.
func (v *view) replacementDeadline(lost time.Time) time.Time {
	blamed := len(v.nodesToBlame()) > 0
	if !blamed {
		lost = v.lossEnds(lost)
	}
	inTime := lost.Add(v.Policy.FailureGrace)
	if slices.ContainsFunc(v.Pods, Pod.wasRejected) {
		return inTime // one after the other may be
	}
	deadline := inTime
	for _, p := range v.Pods {
		finds := !blamed || p.Node != "" || !p.Started.IsZero() // else no other node has room
		if finds && p.begins() && !p.Created.After(inTime) {
			deadline = later(deadline, p.Created.Add(v.Policy.WarmupGrace))
		}
	}
	return deadline
}

// begins: the pod was created, and does not run yet.
func (p Pod) begins() bool {
	return p.Phase == corev1.PodPending && !p.Terminating && !p.Created.IsZero()
}

// lossEnds is when the last pod that is told to end is gone, or must be.
func (v *view) lossEnds(lost time.Time) time.Time {
	lost = later(lost, v.LastGone)
	for _, p := range v.Pods {
		if p.Terminating && p.alive() && !v.belongsToFinished(p) {
			lost = later(lost, p.EndsBy)
		}
	}
	return lost
}

// replacedBy is until when the operators of failed pods may replace them, or fail: they pause before that.
func (v *view) replacedBy(s podSets) time.Time {
	var last time.Time
	for _, set := range s.sets {
		if set.failed == 0 || set.present() >= set.expected {
			continue
		}
		pause := v.kindOf(set.component).Pause(set.failed)
		for _, p := range v.Pods {
			if pause > 0 && p.Component == set.component && p.Phase == corev1.PodFailed && !p.Ended.IsZero() {
				last = later(last, earlier(p.Ended, v.now).Add(pause+v.Policy.FailureGrace))
			}
		}
	}
	return last
}
