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
	// Since is when the node failed it; only cordons depend on it.
	Since time.Time
	// Until is when it does so no more.
	Until time.Time
	// Unproven of PodFailed: the AppWrapper has not done well elsewhere since, so its program may
	// be to blame.
	Unproven bool
}

// Suspect is a node that looks healthy, and does not run the pods of AppWrappers that have nothing
// to do with each other.
type Suspect struct {
	Node string
	// By is how many AppWrappers blame it.
	By int
	// Teams is in how many namespaces these are.
	Teams int
	// Cause is the latest of theirs.
	Cause string
}

// Suspects are the nodes that enough AppWrappers blame at this time; first the one that most do.
// An AppWrapper counts once, however often a node failed it. Only what the platform itself sees
// counts: of other causes Kubernetes knows as well. Failed programs count only together, see
// believed.
func Suspects(blames []Blame, enough int, now time.Time) []Suspect {
	counted := slices.DeleteFunc(slices.Clone(blames), func(b Blame) bool { return !now.Before(b.Until) || !seenByPlatform(b.Cause) })
	failed := slices.DeleteFunc(slices.Clone(blames), func(b Blame) bool { return !now.Before(b.Until) || sourceNamed(b.Cause) != PodFailed })
	var suspects []Suspect
	for node, blames := range byNode(append(counted, believed(failed, enough)...)) {
		appWrappers, teams := count(blames)
		if enough > 0 && appWrappers >= enough {
			latest := slices.MaxFunc(blames, func(a, b Blame) int { return cmp.Or(a.Until.Compare(b.Until), cmp.Compare(a.Cause, b.Cause)) })
			suspects = append(suspects, Suspect{Node: node, By: appWrappers, Teams: teams, Cause: latest.Cause})
		}
	}
	slices.SortFunc(suspects, Suspect.compare)
	return suspects
}

// Source is that of the cause.
func (s Suspect) Source() Source { return sourceNamed(s.Cause) }

// compare puts the one first that most blame.
func (s Suspect) compare(other Suspect) int {
	return cmp.Or(cmp.Compare(other.By, s.By), cmp.Compare(s.Node, other.Node))
}

// count tells how many AppWrappers blame, and of how many teams. An AppWrapper counts once.
func count(blames []Blame) (appWrappers, teams int) {
	by, in := map[types.NamespacedName]bool{}, map[string]bool{}
	for _, b := range blames {
		by[b.By], in[b.By.Namespace] = true, true
	}
	return len(by), len(in)
}

func byNode(blames []Blame) map[string][]Blame {
	all := map[string][]Blame{}
	for _, b := range blames {
		all[b.Node] = append(all[b.Node], b)
	}
	return all
}

// seenByPlatform: no sign of the node tells it.
func seenByPlatform(cause string) bool {
	source := sourceNamed(cause)
	return source == PodRejected || source == PodNotStarted
}

func sourceNamed(cause string) Source {
	source, _, _ := strings.Cut(cause, " ")
	return Source(source)
}
