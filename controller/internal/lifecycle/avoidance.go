// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/internal/nodehealth"
)

// Avoidance bounds what an AppWrapper remembers of nodes that failed it. Only nodes that are to
// blame are remembered: work that fails by itself would soon avoid all nodes.
type Avoidance struct {
	// Nodes is how many nodes are avoided at most; 0 avoids none.
	Nodes int32
	// Period is for how long.
	Period time.Duration
	// SuspectAfter is how many AppWrappers must blame a node until others prefer different nodes;
	// 0 is never.
	SuspectAfter int32
}

// avoid remembers nodes that pods leave. It does not remember those that the scheduler avoids by
// itself while something is wrong with them.
func (v *view) avoid(nodes map[string][]nodehealth.Cause) {
	until := metav1.Time{Time: v.now.Add(v.Policy.Avoid.Period)}
	for _, name := range slices.Sorted(maps.Keys(nodes)) {
		causes := slices.DeleteFunc(slices.Clone(nodes[name]), func(c nodehealth.Cause) bool { return c.Source.SeenByScheduler() })
		if len(causes) == 0 {
			continue
		}
		v.status.AvoidedNodes = slices.DeleteFunc(v.status.AvoidedNodes, func(n v1beta2.AvoidedNode) bool { return n.Name == name })
		cause := slices.MinFunc(causes, nodehealth.Cause.Compare).String()
		v.status.AvoidedNodes = append(v.status.AvoidedNodes, v1beta2.AvoidedNode{Name: name, Cause: cause, Since: &metav1.Time{Time: v.now}, Until: until})
	}
	v.boundAvoidance()
}

// boundAvoidance forgets nodes whose time is over, and the oldest of too many. A time that is
// too far in the future was written before a clock was put back or a period was shortened.
func (v *view) boundAvoidance() {
	latest := v.now.Add(v.Policy.Avoid.Period + maxSkew)
	known := slices.DeleteFunc(v.status.AvoidedNodes, func(n v1beta2.AvoidedNode) bool {
		return !v.now.Before(n.Until.Time) || n.Until.After(latest)
	})
	if surplus := len(known) - int(v.Policy.Avoid.Nodes); surplus > 0 {
		known = known[surplus:]
	}
	v.status.AvoidedNodes = nil
	if len(known) > 0 {
		v.status.AvoidedNodes = known
	}
	if n := v.status.FailedNode; n != nil && (!v.now.Before(n.Until.Time) || n.Until.After(latest)) {
		v.status.FailedNode = nil
	}
}

// nodesWereLeft: the reset happened because of nodes, or has added some to those that are avoided.
func (v *view) nodesWereLeft() bool {
	if v.hasReason(v1beta2.Unhealthy, v1beta2.ReasonAutopilotNoExecute) {
		return true
	}
	began := v.status.PhaseTransitionTime
	return began != nil && slices.ContainsFunc(v.status.AvoidedNodes, func(n v1beta2.AvoidedNode) bool {
		return n.Until.Time.Add(time.Second).After(began.Add(v.Policy.Avoid.Period)) // both times are stored in whole seconds
	})
}

// forgetIfThereIsNoRoom: pods still wait for a node, perhaps because of those that they avoid. Kueue assigns none of
// these.
func (v *view) forgetIfThereIsNoRoom(c podCounts) {
	if c.unplaced > 0 && !v.NodesAssigned {
		v.status.AvoidedNodes = nil
	}
}

// announcingAvoidance tells which nodes the new pods keep away from, and than which they prefer
// others.
func (v *view) announcingAvoidance(d Decision) Decision {
	var avoided, suspect []string
	for _, n := range v.status.AvoidedNodes {
		avoided = append(avoided, fmt.Sprintf("%s (%s)", n.Name, n.Cause))
	}
	for _, s := range v.Disliked() {
		suspect = append(suspect, fmt.Sprintf("%s (%s)", s.Node, s.Cause))
	}
	var said []string
	switch {
	case len(avoided) > 0 && v.NodesAssigned:
		said = append(said, "Kueue assigns nodes, and is asked to keep away from those that failed: "+strings.Join(avoided, ", "))
	case len(avoided) > 0:
		said = append(said, "pods keep away from nodes that failed: "+strings.Join(avoided, ", "))
	}
	if len(suspect) > 0 && !v.NodesAssigned {
		said = append(said, "pods prefer other nodes to those that failed unrelated work: "+strings.Join(suspect, ", "))
	}
	if len(said) == 0 {
		return d
	}
	return d.announcing(avoidingEvent(strings.Join(said, "; ")))
}
