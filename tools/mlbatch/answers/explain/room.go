// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/mlbatch/mlbatch/tools/mlbatch/quota"
)

// room compares what waiting pods request with what nodes have free: is it too little, or only in pieces that are too
// small? It needs the nodes and the pods on them.
func room(o Objects) []Cause {
	if o.Placed == nil || o.isWell() {
		return nil
	}
	for i := range o.Pods {
		pod := &o.Pods[i]
		for _, name := range lacking(pod) {
			if found := o.roomOf(pod, name); len(found) > 0 {
				return found
			}
		}
	}
	return nil
}

// lacking are the resources of which a scheduler says that nodes have too little for a pod.
func lacking(pod *corev1.Pod) (names []corev1.ResourceName) {
	for _, c := range pod.Status.Conditions {
		if pod.Spec.NodeName != "" || c.Type != corev1.PodScheduled || c.Status != corev1.ConditionFalse {
			continue
		}
		for _, rest := range strings.Split(c.Message, " Insufficient ")[1:] {
			name, _, _ := strings.Cut(strings.TrimSpace(rest), " ")
			names = append(names, resourceName(strings.TrimRight(name, ".,")))
		}
	}
	return names
}

// Lacking are the resources of which nodes have too little for pods, as schedulers say. Nodes and Placed tell more.
func (o Objects) Lacking() (names []corev1.ResourceName) {
	for i := range o.Pods {
		names = append(names, lacking(&o.Pods[i])...)
	}
	return names
}

// piece is what a node has of a resource.
type piece struct {
	node       string
	free, size int64 // in thousandths
}

func (o Objects) roomOf(pod *corev1.Pod, name corev1.ResourceName) []Cause {
	needed, pieces := request(pod, name), o.pieces(pod, name)
	if needed <= 0 || len(pieces) == 0 {
		return nil
	}
	count, free, fitting, largest := o.together(pod, name), int64(0), int64(0), int64(0)
	for _, p := range pieces {
		free += p.free
		fitting += p.free / needed
		largest = max(largest, p.size)
	}
	code := Code("NodesFragmented")
	switch {
	case largest < needed:
		code = "NodesTooSmall"
	case free < count*needed:
		code = "NodesFull"
	case fitting >= count:
		return nil
	}
	format := quota.Requests(pod)[name].Format
	c := cause(code, Evidence{"Pod " + pod.Name, "request of " + string(name), amount(needed, format)})
	if count > 1 {
		also(Evidence{"Pod " + pod.Name, "pods that request as much, and have to be placed together", fmt.Sprint(count)})(&c)
	}
	listed(pieces, name, format)(&c)
	if code == "NodesFull" {
		return append([]Cause{c}, o.beyondNodes(name)...)
	}
	return []Cause{c}
}

// mostNodes is how many nodes a cause lists.
const mostNodes = 8

// listed lists the nodes with the most free.
func listed(pieces []piece, name corev1.ResourceName, format resource.Format) change {
	slices.SortFunc(pieces, func(a, b piece) int { return cmp.Or(cmp.Compare(b.free, a.free), cmp.Compare(a.node, b.node)) })
	return func(c *Cause) {
		for _, p := range pieces[:min(len(pieces), mostNodes)] {
			also(Evidence{"Node " + p.node, "free " + string(name), amount(p.free, format) + " of " + amount(p.size, format)})(c)
		}
		if more := len(pieces) - mostNodes; more > 0 {
			c.Who = append(c.Who, fmt.Sprintf("%d more nodes have no more free than these", more))
		}
	}
}

func amount(thousandths int64, format resource.Format) string {
	return resource.NewMilliQuantity(thousandths, format).String()
}

func request(pod *corev1.Pod, name corev1.ResourceName) int64 {
	amount := quota.Requests(pod)[name]
	return amount.MilliValue()
}

// together is how many pods that wait request as much as this one, if they are placed together or not at all.
func (o Objects) together(pod *corev1.Pod, name corev1.ResourceName) int64 {
	group, count := pod.Labels[podGroupLabel], int64(0)
	for i := range o.Pods {
		p := &o.Pods[i]
		waits := p.Spec.NodeName == "" && (p.Status.Phase == corev1.PodPending || p.Status.Phase == "")
		if waits && group != "" && p.Labels[podGroupLabel] == group && request(p, name) == request(pod, name) {
			count++
		}
	}
	return max(count, 1)
}

// podGroupLabel names the PodGroup of a pod.
const podGroupLabel = "scheduling.x-k8s.io/pod-group"

// pieces are what the nodes have that a pod may use, as far as its selectors and tolerations tell.
func (o Objects) pieces(pod *corev1.Pod, name corev1.ResourceName) (all []piece) {
	used := quota.Used(o.Placed)
	selects := nodeaffinity.GetRequiredNodeAffinity(pod)
	for i := range o.Nodes {
		node := &o.Nodes[i]
		size := node.Status.Allocatable[name]
		if matches, err := selects.Match(node); err != nil || !matches || node.Spec.Unschedulable || node.Name == "" || !tolerates(pod, node) {
			continue
		}
		free := quota.Free(size, used[node.Name][name])
		all = append(all, piece{node.Name, free.MilliValue(), size.MilliValue()})
	}
	return all
}

// tolerates: the pod tolerates all taints of a node for which pods are not scheduled.
func tolerates(pod *corev1.Pod, node *corev1.Node) bool {
	return !slices.ContainsFunc(node.Spec.Taints, func(taint corev1.Taint) bool {
		return taint.Effect != corev1.TaintEffectPreferNoSchedule && !slices.ContainsFunc(pod.Spec.Tolerations, func(t corev1.Toleration) bool { return covers(t, taint) })
	})
}

// covers: the toleration is for the taint. One that compares numbers counts as one that is, so that more nodes than
// there are seem to have room.
func covers(t corev1.Toleration, taint corev1.Taint) bool {
	switch {
	case t.Effect != "" && t.Effect != taint.Effect, t.Key != "" && t.Key != taint.Key:
		return false
	case t.Operator == "" || t.Operator == corev1.TolerationOpEqual:
		return t.Value == taint.Value && t.Key != ""
	}
	return true
}

// beyondNodes is about a flavor whose quota is more than all its nodes have.
func (o Objects) beyondNodes(name corev1.ResourceName) []Cause {
	if o.Flavor == nil {
		return nil
	}
	here := quota.Cluster{Tree: o.tree(), Flavors: []kueue.ResourceFlavor{*o.Flavor}, Nodes: o.Nodes}
	for _, b := range here.Balances() {
		if string(b.Flavor) == o.Flavor.Name && b.Resource == name && b.BeyondNodes() {
			return []Cause{cause("QuotaBeyondNodes", Evidence{"ResourceFlavor " + o.Flavor.Name, "sum of the quota of " + string(name), b.Quota.String()},
				also(Evidence{"ResourceFlavor " + o.Flavor.Name, "sum of what its nodes have of " + string(name), b.Shown.String()}))}
		}
	}
	return nil
}
