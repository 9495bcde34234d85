// SPDX-License-Identifier: Apache-2.0

package checkup

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	helper "k8s.io/component-helpers/resource"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/tools/mlbatch/audit"
)

// isDevice reports whether a resource is counted in pieces of hardware.
func isDevice(name corev1.ResourceName) bool {
	domain, _, found := strings.Cut(string(name), "/")
	return found && domain != "kubernetes.io" && !strings.HasSuffix(domain, ".kubernetes.io")
}

func (o Objects) nodeNotReady() (found []sight) {
	for _, n := range o.flavored() {
		for _, c := range n.Status.Conditions {
			if c.Type == corev1.NodeReady && c.Status != corev1.ConditionTrue {
				found = append(found, of("Node "+n.Name, "condition Ready", string(c.Status), "message", c.Message, "devices", devices(n.Status.Capacity)))
			}
		}
	}
	return found
}

func (o Objects) nodeUnhealthy() (found []sight) {
	for _, n := range o.Nodes {
		if signs := o.Signs.Unhealthy(&n); len(signs) > 0 {
			found = append(found, of("Node "+n.Name, "signs", some(signs)))
		}
	}
	return found
}

func (o Objects) nodeSuspect() (found []sight) {
	for _, s := range o.Signs.Suspects(o.AppWrappers, o.Now) {
		found = append(found, of("Node "+s.Node, "blamed by", fmt.Sprintf("%d AppWrappers", s.By), "cause", s.Cause))
	}
	return found
}

func (o Objects) nodeCordoned() (found []sight) {
	for _, n := range o.flavored() {
		if n.Spec.Unschedulable {
			found = append(found, of("Node "+n.Name, "spec.unschedulable", "true", "by the controller", n.Annotations[v1beta2.CordonedAnnotation],
				"devices", devices(n.Status.Capacity)))
		}
	}
	return found
}

// devices are the amounts of all devices.
func devices(all corev1.ResourceList) string {
	var found []string
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if amount := all[name]; isDevice(name) && amount.Sign() > 0 {
			found = append(found, amount.String()+" "+string(name))
		}
	}
	return strings.Join(found, ", ")
}

func (o Objects) devicesMissing() (found []sight) {
	for _, n := range o.Nodes {
		for _, name := range slices.Sorted(maps.Keys(n.Status.Capacity)) {
			usable, all := n.Status.Allocatable[name], n.Status.Capacity[name]
			if isDevice(name) && usable.Cmp(all) < 0 {
				found = append(found, of("Node "+n.Name, "resource", string(name), "allocatable", usable.String(), "capacity", all.String()))
			}
		}
	}
	return found
}

// queued reports whether a pod belongs to work in a queue. Kueue labels the pods of what it has
// admitted, and the AppWrapper controller its own.
func queued(p corev1.Pod) bool {
	for _, label := range []string{audit.PodSetLabel, v1beta2.AppWrapperLabel, v1beta2.QueueNameLabel} {
		if p.Labels[label] != "" {
			return true
		}
	}
	return false
}

// needs is what a pod requests of a resource.
func needs(p corev1.Pod, name corev1.ResourceName) resource.Quantity {
	return helper.PodRequests(&p, helper.PodResourcesOptions{})[name]
}

// workOutsideQueues counts devices only: each node has pods that use some CPU outside the queues.
func (o Objects) workOutsideQueues() (found []sight) {
	covered, at := o.coveredDevices(), map[string]bool{}
	for _, n := range o.flavored() {
		at[n.Name] = true
	}
	type use struct {
		pods   []string
		amount resource.Quantity
	}
	uses := map[[2]string]use{}
	for _, p := range o.Pods {
		if !at[p.Spec.NodeName] || !audit.UsesNode(p) || queued(p) {
			continue
		}
		for _, name := range covered {
			if amount := needs(p, name); amount.Sign() > 0 {
				u := uses[[2]string{p.Namespace, string(name)}]
				u.pods = append(u.pods, p.Name)
				u.amount.Add(amount)
				uses[[2]string{p.Namespace, string(name)}] = u
			}
		}
	}
	for _, key := range slices.SortedFunc(maps.Keys(uses), func(a, b [2]string) int { return cmp.Or(cmp.Compare(a[0], b[0]), cmp.Compare(a[1], b[1])) }) {
		u := uses[key]
		found = append(found, of("Namespace "+key[0], "uses", u.amount.String()+" "+key[1], "pods", fmt.Sprint(len(u.pods)), "such as", some(u.pods)))
	}
	return found
}

func (o Objects) coveredDevices() (names []corev1.ResourceName) {
	for c := range o.promised() {
		if isDevice(c.resource) && !slices.Contains(names, c.resource) {
			names = append(names, c.resource)
		}
	}
	slices.Sort(names)
	return names
}

// stranding is about one kind of device on nodes of one size.
type stranding struct {
	resource corev1.ResourceName
	size     int64
}

// devicesStranded looks for free devices that a whole node could have, if what runs were packed.
func (o Objects) devicesStranded() (found []sight) {
	free, nodes := map[stranding]int64{}, map[stranding][]string{}
	used := o.used(false)
	for _, n := range o.Nodes {
		for name, stock := range o.Signs.Stocks(&n) {
			amount, taken := stock.Usable, used[n.Name][name]
			if left := amount.Value() - taken.Value(); isDevice(name) && taken.Value() > 0 && left > 0 {
				s := stranding{name, amount.Value()}
				free[s] += left
				nodes[s] = append(nodes[s], n.Name)
			}
		}
	}
	for _, s := range slices.SortedFunc(maps.Keys(free), func(a, b stranding) int {
		return cmp.Or(cmp.Compare(a.resource, b.resource), cmp.Compare(a.size, b.size))
	}) {
		if free[s] >= s.size {
			found = append(found, of("Nodes with "+fmt.Sprint(s.size)+" "+string(s.resource),
				"free", fmt.Sprint(free[s]), "partly used nodes", fmt.Sprint(len(nodes[s])), "such as", some(nodes[s])))
		}
	}
	return found
}

// used is what pods request of each node; of those that are in no queue, or of all.
func (o Objects) used(onlyOutside bool) map[string]corev1.ResourceList {
	all := map[string]corev1.ResourceList{}
	for _, p := range o.Pods {
		if !audit.UsesNode(p) || onlyOutside && queued(p) {
			continue
		}
		if all[p.Spec.NodeName] == nil {
			all[p.Spec.NodeName] = corev1.ResourceList{}
		}
		for name, amount := range helper.PodRequests(&p, helper.PodResourcesOptions{}) {
			sum := all[p.Spec.NodeName][name]
			sum.Add(amount)
			all[p.Spec.NodeName][name] = sum
		}
	}
	return all
}
