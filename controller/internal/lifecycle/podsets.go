// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/internal/kinds"
)

// podSet is one pod set of one unfinished component, with its pods. Pods are expected, missing, replaced and late as
// pods of their set: a pod too many of one set never stands in for one that another set lacks.
//
// A pod says itself which set it belongs to, with a label that the controller writes into each pod template. So this
// holds for every kind, also for unknown ones and for pods that an operator makes through something in between.
type podSet struct {
	component, index int
	// turn is when its pods come.
	turn kinds.Turn
	// expected is how many pods there are while the component works; 0 if nobody waits for them, or not yet.
	expected int
	// replaced: pods that have succeeded are missing, because their operator makes new ones.
	replaced bool
	ends     kinds.Ends
	// due is when pods whose turn has not come are expected, if they have not come by then; zero if nobody can say.
	due time.Time
	podCounts
}

// podSets are those of all unfinished components. The pods of a finished component no longer matter, whether they
// run, have failed or are gone.
type podSets struct {
	sets []podSet
	// others are pods that do not say which set they belong to: an older release or another AppWrapper controller has
	// made them. They stand in for any of their component, and those of UnknownComponent for any at all.
	others map[int]podCounts
}

func (v *view) podSets() podSets {
	all := podSets{others: map[int]podCounts{}}
	first := make([]int, len(v.status.ComponentStatus)+1)
	for i, s := range v.status.ComponentStatus {
		first[i+1] = len(all.sets)
		if v.finished(i) {
			continue
		}
		for j, p := range s.PodSets {
			all.sets = append(all.sets, podSet{component: i, index: j, turn: v.Components[i].Turns[p.Path], expected: int(p.Count()),
				replaced: v.kindOf(i).ReplacesWhatEnds(), ends: v.Components[i].Ends[p.Path]})
		}
		first[i+1] = len(all.sets)
	}
	for _, p := range v.Pods {
		if !p.Foreign && !v.belongsToFinished(p) {
			all.add(p, first)
		}
	}
	for n := range all.sets {
		set := &all.sets[n]
		v.addEnded(set)
		v.takeTurn(set, all.sets[first[set.component]:first[set.component+1]])
	}
	return all
}

// add counts a pod where it belongs. The sets of component i are those from first[i] until first[i+1].
func (s *podSets) add(p Pod, first []int) {
	if 0 <= p.Component && p.Component+1 < len(first) {
		sets := s.sets[first[p.Component]:first[p.Component+1]]
		if 0 <= p.PodSet && p.PodSet < len(sets) {
			sets[p.PodSet].count(p)
			return
		}
	}
	counts := s.others[p.Component]
	counts.count(p)
	s.others[p.Component] = counts
}

// lacking is how many more pods would have to be among those that are counted here.
func (s podSets) lacking(counted func(podCounts) int) int {
	short := map[int]int{}
	for _, set := range s.sets {
		short[set.component] += max(0, set.expected-counted(set.podCounts))
	}
	lacking := 0
	for component, n := range short {
		lacking += max(0, n-counted(s.others[component]))
	}
	return max(0, lacking-counted(s.others[UnknownComponent]))
}

func (s podSets) ready() bool { return s.lacking(podCounts.well) == 0 }

// complete: as many pods as expected exist and have not failed. So each failed pod was
// replaced, though its replacement may not run yet.
func (s podSets) complete() bool { return s.lacking(podCounts.present) == 0 }

// failed: a pod has failed of a set that lacks one, or of which nobody knows the set.
func (s podSets) failed() bool {
	for _, set := range s.sets {
		if set.failed > 0 && set.present() < set.expected {
			return true
		}
	}
	for _, others := range s.others {
		if others.failed > 0 {
			return true
		}
	}
	return false
}

// total adds up what somebody waits for.
func (s podSets) total() (expected int, c podCounts) {
	for _, set := range s.sets {
		if expected += set.expected; set.expected > 0 {
			c.add(set.podCounts)
		}
	}
	for _, others := range s.others {
		c.add(others)
	}
	return expected, c
}

func (s podSets) String() string {
	expected, c := s.total()
	counts := fmt.Sprintf("%d pods expected; %d pods pending; %d pods running; %d pods succeeded; %d pods failed",
		expected, c.pending, c.running, c.succeeded, c.failed)
	if c.crashing > 0 {
		counts += fmt.Sprintf("; %d pods crash again and again", c.crashing)
	}
	return counts
}

// podCounts counts pods.
type podCounts struct {
	pending, running, succeeded, failed int
	crashing                            int // those whose program, or an init container, crashes again and again
	preparing                           int // those of the pending ones whose init containers run
	givenUp                             int // those that have failed, and their component goes on without them
	accepted                            int // all but those that their nodes rejected
	unplaced                            int // those of the pending ones that have no node
}

// count adds a pod. A running pod that is being deleted counts as lost, and so does one that ended with success
// because it was deleted. Phase Unknown counts neither way.
func (c *podCounts) count(p Pod) {
	if !p.wasRejected() {
		c.accepted++
	}
	switch p.Phase {
	case corev1.PodPending:
		c.countPending(p)
	case corev1.PodRunning:
		c.countRunning(p)
	case corev1.PodSucceeded:
		if p.Interrupted.IsZero() {
			c.succeeded++
		}
	case corev1.PodFailed:
		c.failed++
	}
}

func (c *podCounts) countPending(p Pod) {
	switch {
	case p.CrashLoop != "" && !p.Terminating:
		c.crashing++
		return
	case !p.InitSince.IsZero() && !p.Terminating:
		c.preparing++
	case p.Node == "" && p.Started.IsZero():
		c.unplaced++
	}
	c.pending++
}

func (c *podCounts) countRunning(p Pod) {
	switch {
	case p.Terminating:
	case p.CrashLoop != "":
		c.crashing++
	default:
		c.running++
	}
}

func (c *podCounts) add(o podCounts) {
	c.pending, c.running, c.succeeded, c.failed = c.pending+o.pending, c.running+o.running, c.succeeded+o.succeeded, c.failed+o.failed
	c.accepted, c.unplaced = c.accepted+o.accepted, c.unplaced+o.unplaced
	c.crashing, c.preparing = c.crashing+o.crashing, c.preparing+o.preparing
}

func (c podCounts) well() int    { return c.running + c.succeeded + c.givenUp }
func (c podCounts) started() int { return c.crashing + c.well() }
func (c podCounts) begun() int   { return c.preparing + c.started() }
func (c podCounts) present() int { return c.pending + c.started() }
func (c podCounts) alive() int   { return c.pending + c.running + c.crashing }
func (c podCounts) ended() int   { return c.succeeded }
func (c podCounts) taken() int   { return c.accepted }

// replacesPods: the operator of component i makes a new pod for each that ends, and it has some.
func (v *view) replacesPods(i int) bool {
	some := func(p v1beta2.AppWrapperPodSet) bool { return p.Count() > 0 }
	return v.kindOf(i).ReplacesWhatEnds() && slices.ContainsFunc(v.status.ComponentStatus[i].PodSets, some)
}

// kindOf is what is known about the kind of component i.
func (v *view) kindOf(i int) kinds.Kind {
	s := v.status.ComponentStatus[i]
	return kinds.For(schema.FromAPIVersionAndKind(s.APIVersion, s.Kind))
}
