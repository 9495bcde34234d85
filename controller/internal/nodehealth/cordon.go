// SPDX-License-Identifier: Apache-2.0

package nodehealth

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
)

// Cordoning is how far an administrator lets nodes that fail unrelated work be cordoned.
type Cordoning struct {
	// Nodes is how many may be cordoned for that at the same time; 0 cordons none.
	Nodes int
	// AppWrappers is how many must blame a node, and Teams in how many namespaces.
	AppWrappers, Teams int
}

// Cordons is what to do about the nodes of a cluster.
type Cordons struct {
	// Begin are the nodes to cordon.
	Begin []Suspect
	// Spared would be cordoned, too, if not as many were as may be.
	Spared []Suspect
	// Ended are the nodes that were cordoned for that, and that somebody has uncordoned.
	Ended []string
}

// Nothing tells whether no node changes.
func (c Cordons) Nothing() bool {
	return len(c.Begin) == 0 && len(c.Ended) == 0
}

// Decide says which nodes to cordon. A cordoned node is nobody's to uncordon but an
// administrator's; from then on it starts afresh. What others have cordoned is not touched.
func (c Cordoning) Decide(nodes []corev1.Node, blames []Blame, now time.Time) Cordons {
	var cordons Cordons
	var guilty []Suspect
	blamed, room := byNode(blames), c.Nodes
	for i := range nodes {
		_, ours := nodes[i].Annotations[v1beta2.CordonedAnnotation]
		switch {
		case ours && nodes[i].Spec.Unschedulable:
			room--
		case ours:
			cordons.Ended = append(cordons.Ended, nodes[i].Name)
		case !nodes[i].Spec.Unschedulable && nodes[i].DeletionTimestamp == nil:
			guilty = append(guilty, c.judge(&nodes[i], blamed[nodes[i].Name], now)...)
		}
	}
	slices.SortFunc(guilty, Suspect.compare)
	slices.Sort(cordons.Ended)
	room = min(max(room, 0), len(guilty))
	cordons.Begin, cordons.Spared = guilty[:room], guilty[room:]
	return cordons
}

// judge returns the node if it has failed enough AppWrappers of enough teams since it started
// afresh.
func (c Cordoning) judge(node *corev1.Node, blames []Blame, now time.Time) []Suspect {
	afresh := startedAfresh(node)
	counted := slices.DeleteFunc(slices.Clone(blames), func(b Blame) bool { return !b.Since.After(afresh) || byAuthor(b.Cause) })
	return slices.DeleteFunc(Suspects(counted, c.AppWrappers, now), func(s Suspect) bool { return s.Teams < c.Teams })
}

// startedAfresh is when the node came, or was seen to be uncordoned.
func startedAfresh(node *corev1.Node) time.Time {
	uncordoned, err := time.Parse(time.RFC3339, node.Annotations[v1beta2.UncordonedAnnotation])
	if err != nil || uncordoned.Before(node.CreationTimestamp.Time) {
		return node.CreationTimestamp.Time
	}
	return uncordoned
}

// byAuthor: an author can bring about that pods do not start on a node of their choice and do
// elsewhere, and a registry that fails does so on all nodes without the image.
func byAuthor(cause string) bool {
	return cause == Cause{PodNotStarted, OthersStarted}.String()
}
