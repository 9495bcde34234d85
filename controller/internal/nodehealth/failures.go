// SPDX-License-Identifier: Apache-2.0

package nodehealth

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
)

// Programs fail by their own faults far more often than nodes do. So a failed program says
// something about its node only if
//
//   - it failed there and nowhere else, and did well elsewhere afterwards (Proven),
//   - enough AppWrappers of two teams say so: one team may run one broken program many times, and
//   - nearly all programs that fail in the cluster fail there: when a file system or a network is
//     away for a moment, programs fail on all nodes, and do well when they are tried again.

// teamsToBelieve is of how many teams the programs must be that failed on a node.
const teamsToBelieve = 2

// shareToBelieve is how many times more AppWrappers must have failed on a node than on all others
// together.
const shareToBelieve = 2

// believed are the blames, of those with PodFailed, that say something about their nodes. Those
// that are not proven count only against the suspicion of other nodes.
func believed(failed []Blame, enough int) []Blame {
	var all []Blame
	for node, blames := range byNode(failed) {
		proven := slices.DeleteFunc(blames, func(b Blame) bool { return b.Unproven })
		elsewhere, _ := count(slices.DeleteFunc(slices.Clone(failed), func(b Blame) bool { return b.Node == node }))
		if n, teams := count(proven); n >= max(enough, shareToBelieve*elsewhere) && teams >= teamsToBelieve {
			all = append(all, proven...)
		}
	}
	return all
}

// well is for how long work must at least run elsewhere until its failure says something.
const well = 5 * time.Minute

// Proven is when it is certain that an AppWrapper with this status does well elsewhere than on its
// FailedNode: it has succeeded, or run for longer than it lasted there. It is not known if it does
// neither.
func Proven(status v1beta2.AppWrapperStatus) (at time.Time, known bool) {
	ready := meta.FindStatusCondition(status.Conditions, string(v1beta2.PodsReady))
	switch {
	case status.FailedNode == nil:
		return time.Time{}, false
	case status.Phase == v1beta2.AppWrapperSucceeded:
		return time.Time{}, true
	case status.Phase != v1beta2.AppWrapperRunning || ready == nil || ready.Status != metav1.ConditionTrue:
		return time.Time{}, false
	}
	lasted := time.Duration(status.FailedNode.LastedSeconds) * time.Second
	return ready.LastTransitionTime.Add(max(lasted, well)), true
}

// Blames are those of an AppWrapper with this status. One that has failed for good blames no node
// for that: its program may fail everywhere.
func Blames(by types.NamespacedName, status v1beta2.AppWrapperStatus, now time.Time) []Blame {
	blames := make([]Blame, len(status.AvoidedNodes))
	for i, n := range status.AvoidedNodes {
		blames[i] = Blame{By: by, Node: n.Name, Cause: n.Cause, Until: n.Until.Time}
	}
	if n := status.FailedNode; n != nil && status.Phase != v1beta2.AppWrapperFailed {
		at, known := Proven(status)
		blames = append(blames, Blame{By: by, Node: n.Name, Cause: n.Cause, Until: n.Until.Time, Unproven: !known || now.Before(at)})
	}
	return blames
}
