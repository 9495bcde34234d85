// SPDX-License-Identifier: Apache-2.0

package nodehealth

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Blame is that an AppWrapper keeps away from a node that failed it.
type Blame struct {
	// By is the AppWrapper.
	By    types.NamespacedName
	Node  string
	Cause string
	// Until is when it does so no more.
	Until time.Time
}

// Suspect is a node that looks healthy, and does not run the pods of AppWrappers that have nothing
// to do with each other.
type Suspect struct {
	Node string
	// By is how many AppWrappers blame it.
	By int
	// Cause is the latest of theirs.
	Cause string
}

// Suspects are the nodes that enough AppWrappers blame at this time; first the one that most do.
// An AppWrapper counts once, however often a node failed it. Only what the platform itself sees
// counts: of other causes Kubernetes knows as well.
func Suspects(blames []Blame, enough int, now time.Time) []Suspect {
	byNode := map[string][]Blame{}
	for _, b := range blames {
		if now.Before(b.Until) && seenByPlatform(b.Cause) {
			byNode[b.Node] = append(byNode[b.Node], b)
		}
	}
	var suspects []Suspect
	for node, blames := range byNode {
		appWrappers := map[types.NamespacedName]bool{}
		for _, b := range blames {
			appWrappers[b.By] = true
		}
		if enough > 0 && len(appWrappers) >= enough {
			latest := slices.MaxFunc(blames, func(a, b Blame) int { return cmp.Or(a.Until.Compare(b.Until), cmp.Compare(a.Cause, b.Cause)) })
			suspects = append(suspects, Suspect{Node: node, By: len(appWrappers), Cause: latest.Cause})
		}
	}
	slices.SortFunc(suspects, func(a, b Suspect) int { return cmp.Or(cmp.Compare(b.By, a.By), cmp.Compare(a.Node, b.Node)) })
	return suspects
}

// seenByPlatform: no sign of the node tells it.
func seenByPlatform(cause string) bool {
	source, _, _ := strings.Cut(cause, " ")
	return Source(source) == PodRejected || Source(source) == PodNotStarted
}
