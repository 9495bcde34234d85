// SPDX-License-Identifier: Apache-2.0

package slackquota

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
)

// state is what happens to a node with 8 GPUs.
type state struct {
	node                  string
	cordoned, bad         bool
	capacity, allocatable int64
}

const devicesOfANode = 8

// usable is how many GPUs new pods get.
func (s state) usable() int64 {
	if s.cordoned || s.bad {
		return 0
	}
	return s.allocatable
}

func (s state) apply(c *cluster) {
	n := nodeOf(s.node, s.capacity)
	n.Labels["model"] = modelOf(s.node)
	n.Status.Allocatable[gpu] = count(s.allocatable)
	n.Spec.Unschedulable = s.cordoned
	if s.bad {
		n.Labels[healthLabel] = "EVICT"
	}
	c.nodes[n.Name] = n
}

func modelOf(node string) string { return node[:1] }

var (
	nodeNames = []string{"a1", "a2", "a3", "b1", "b2"}
	states    = rapid.Custom(func(t *rapid.T) state {
		s := state{node: rapid.SampledFrom(nodeNames).Draw(t, "node"), cordoned: rapid.IntRange(0, 3).Draw(t, "cordoned") == 0, bad: rapid.IntRange(0, 3).Draw(t, "bad") == 0}
		s.capacity = rapid.OneOf(rapid.Just(int64(devicesOfANode)), rapid.Int64Range(0, devicesOfANode)).Draw(t, "capacity")
		s.allocatable = rapid.OneOf(rapid.Just(s.capacity), rapid.Int64Range(0, s.capacity)).Draw(t, "allocatable")
		return s
	})
)

// randomCluster has two flavors, whose slack is all there is, or less.
func randomCluster(t *rapid.T) *cluster {
	c := newCluster(t, "0")
	c.flavors = []kueue.ResourceFlavor{flavorOf("a", map[string]string{"model": "a"}), flavorOf("b", map[string]string{"model": "b"})}
	nominal := func(most int64) corev1.ResourceList {
		n := rapid.OneOf(rapid.Just(most), rapid.Int64Range(0, most)).Draw(t, "nominal")
		return corev1.ResourceList{gpu: count(n)}
	}
	c.queue = slackQueue(group("a", nominal(3*devicesOfANode)), group("b", nominal(2*devicesOfANode)))
	for _, flavor := range []kueue.ResourceFlavorReference{"a", "b"} {
		if own := rapid.Ptr(rapid.Int64Range(0, 2*devicesOfANode), true).Draw(t, "own"); own != nil {
			c.limit(flavor, gpu, fmt.Sprint(min(*own, c.nominal(flavor))))
		}
	}
	for _, name := range nodeNames {
		state{node: name, capacity: devicesOfANode, allocatable: devicesOfANode}.apply(c)
	}
	c.settle()
	return c
}

func (c *cluster) nominal(flavor kueue.ResourceFlavorReference) int64 {
	n := c.quota(flavor, gpu).NominalQuota
	return n.Value()
}

// lent is how much a flavor lends.
func (c *cluster) lent(flavor kueue.ResourceFlavorReference) int64 {
	if limit := c.quota(flavor, gpu).LendingLimit; limit != nil {
		return limit.Value()
	}
	return c.nominal(flavor)
}

// The teams have what the slack queue has not, so what is lent is at most what is usable, less that.
func TestNoMoreIsLentThanIsUsable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := randomCluster(t)
		own := map[kueue.ResourceFlavorReference]int64{"a": c.lent("a"), "b": c.lent("b")}
		now := map[string]state{}
		for _, s := range rapid.SliceOf(states).Draw(t, "states") {
			s.apply(c)
			c.settle()
			now[s.node] = s
			usable := map[kueue.ResourceFlavorReference]int64{}
			teams := map[kueue.ResourceFlavorReference]int64{}
			for _, name := range nodeNames {
				flavor := kueue.ResourceFlavorReference(modelOf(name))
				teams[flavor] += devicesOfANode
				if is, changed := now[name]; changed {
					usable[flavor] += is.usable()
				} else {
					usable[flavor] += devicesOfANode
				}
			}
			for flavor := range usable {
				teams[flavor] -= c.nominal(flavor)
				want := min(own[flavor], max(0, usable[flavor]-teams[flavor]))
				if got := c.lent(flavor); got != want {
					t.Fatalf("of %d usable in %s %d are lent, and the teams have %d: want %d", usable[flavor], flavor, got, teams[flavor], want)
				}
			}
		}
	})
}

func TestOneMoreHealthyNodeLowersNoLimit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := randomCluster(t)
		for _, s := range rapid.SliceOf(states).Draw(t, "states") {
			s.apply(c)
		}
		c.settle()
		a, b := c.lent("a"), c.lent("b")
		name := rapid.SampledFrom([]string{"a9", "b9", "c9"}).Draw(t, "one more")
		state{node: name, capacity: devicesOfANode, allocatable: devicesOfANode}.apply(c)
		if c.reconcile() || c.lent("a") != a || c.lent("b") != b {
			t.Errorf("%d and %d are lent, before %d and %d", c.lent("a"), c.lent("b"), a, b)
		}
	})
}

// What happens to one node does so in this order, but other nodes may come before or after.
func TestTheOrderOfEventsDoesNotMatter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		one := randomCluster(t)
		other := *one
		other.nodes = map[string]*corev1.Node{}
		for name, n := range one.nodes {
			other.nodes[name] = n
		}
		other.queue = one.queue.DeepCopy()
		happens := rapid.SliceOf(states).Draw(t, "states")
		later := slices.Clone(happens)
		slices.SortStableFunc(later, func(a, b state) int { return slices.Index(nodeNames, a.node) - slices.Index(nodeNames, b.node) })
		for i := range happens {
			happens[i].apply(one)
			one.settle()
			later[i].apply(&other)
			other.settle()
		}
		if diff := cmp.Diff(one.queue.Spec, other.queue.Spec); diff != "" {
			t.Errorf("limits differ (-one +other)\n%s", diff)
		}
		if a, b := one.queue.Annotations[v1beta2.LoweredLendingLimitsAnnotation], other.queue.Annotations[v1beta2.LoweredLendingLimitsAnnotation]; a != b {
			t.Errorf("notes differ: %s and %s", a, b)
		}
	})
}
