// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/mlbatch/mlbatch/controller/nodesigns"
	"github.com/mlbatch/mlbatch/tools/mlbatch/quota"
)

// room compares what waiting pods request with what nodes have free: is it too little, or only in pieces that are too
// small? It needs the nodes and the pods on them. Without these, it knows what the largest nodes of the flavor have.
func room(o Objects) []Cause {
	if o.isWell() {
		return nil
	}
	find := o.roomOf
	if o.Placed == nil {
		find = o.fitsNone
	}
	for i := range o.Pods {
		pod := &o.Pods[i]
		for _, name := range lacking(pod) {
			if found := find(pod, name); len(found) > 0 {
				return found
			}
		}
	}
	return nil
}

// fitsNone is about a pod that requests more than the controller has written to its flavor of the largest nodes.
func (o Objects) fitsNone(pod *corev1.Pod, name corev1.ResourceName) []Cause {
	if o.Flavor == nil || o.flavorOf(pod, name) != o.Flavor.Name {
		return nil
	}
	requests, largest := quota.Requests(pod), nodesigns.Published(o.Flavor)
	if !slices.Contains(nodesigns.Beyond(requests, largest), name) {
		return nil
	}
	needed, most := requests[name], largest[name]
	return []Cause{cause("NodesTooSmall", requested(pod, name, needed), also(Evidence{"ResourceFlavor " + o.Flavor.Name, "the most " + string(name) + " of a node", most.String()}))}
}

func requested(pod *corev1.Pod, name corev1.ResourceName, amount resource.Quantity) Evidence {
	return Evidence{"Pod " + pod.Name, "request of " + string(name), amount.String()}
}

// flavorOf is what Kueue assigned to a pod for a resource. A pod without the label of a pod set may be of any.
func (o Objects) flavorOf(pod *corev1.Pod, name corev1.ResourceName) string {
	if o.Workload == nil || o.Workload.Status.Admission == nil {
		return ""
	}
	of := pod.Labels[quota.PodSetLabel]
	for _, podSet := range o.Workload.Status.Admission.PodSetAssignments {
		if flavor := podSet.Flavors[name]; flavor != "" && (of == "" || of == string(podSet.Name)) {
			return string(flavor)
		}
	}
	return ""
}

// LackingFlavor is the flavor that the first of the pods got for what it lacks; empty if that is not known.
func (o Objects) LackingFlavor() string {
	for i := range o.Pods {
		for _, name := range lacking(&o.Pods[i]) {
			if flavor := o.flavorOf(&o.Pods[i], name); flavor != "" {
				return flavor
			}
		}
	}
	return ""
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
	needed, usable := request(pod, name), o.usable(pod)
	if needed <= 0 || len(usable) == 0 {
		return nil
	}
	count, free, fitting := o.together(pod, name), int64(0), int64(0)
	pieces := o.pieces(usable, name)
	for _, p := range pieces {
		free += p.free
		fitting += p.free / needed
	}
	largest := corev1.ResourceList{name: resource.Quantity{}} // nothing, if none of them has any
	maps.Copy(largest, nodesigns.Largest(usable))
	code := Code("NodesFragmented")
	switch {
	case slices.Contains(nodesigns.Beyond(quota.Requests(pod), largest), name):
		code = "NodesTooSmall"
	case free < count*needed:
		code = "NodesFull"
	case fitting >= count:
		return nil
	}
	whole := quota.Requests(pod)[name]
	format := whole.Format
	c := cause(code, requested(pod, name, whole))
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

// usable are the nodes that a pod may use, as far as its selectors and tolerations tell.
func (o Objects) usable(pod *corev1.Pod) (nodes []*corev1.Node) {
	selects := nodeaffinity.GetRequiredNodeAffinity(pod)
	for i := range o.Nodes {
		node := &o.Nodes[i]
		if matches, err := selects.Match(node); err == nil && matches && !node.Spec.Unschedulable && node.Name != "" && tolerates(pod, node) {
			nodes = append(nodes, node)
		}
	}
	return nodes
}

// pieces are what nodes have.
func (o Objects) pieces(nodes []*corev1.Node, name corev1.ResourceName) (all []piece) {
	used := quota.Used(o.Placed)
	for _, node := range nodes {
		size := node.Status.Allocatable[name]
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
