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

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/nodesigns"
	"github.com/mlbatch/mlbatch/tools/mlbatch/quota"
)

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
		if amount := all[name]; nodesigns.IsDevice(name) && amount.Sign() > 0 {
			found = append(found, amount.String()+" "+string(name))
		}
	}
	return strings.Join(found, ", ")
}

func (o Objects) devicesMissing() (found []sight) {
	for _, n := range o.Nodes {
		for _, name := range slices.Sorted(maps.Keys(n.Status.Capacity)) {
			usable, all := n.Status.Allocatable[name], n.Status.Capacity[name]
			if nodesigns.IsDevice(name) && usable.Cmp(all) < 0 {
				found = append(found, of("Node "+n.Name, "resource", string(name), "allocatable", usable.String(), "capacity", all.String()))
			}
		}
	}
	return found
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
		if !at[p.Spec.NodeName] || !quota.UsesNode(&p) || quota.Queued(&p) {
			continue
		}
		for _, name := range covered {
			if amount := quota.Requests(&p)[name]; amount.Sign() > 0 {
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
	for _, b := range o.balances() {
		if nodesigns.IsDevice(b.Resource) && !slices.Contains(names, b.Resource) {
			names = append(names, b.Resource)
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
	used := quota.Used(o.Pods)
	for _, n := range o.Nodes {
		for name, stock := range o.Signs.Stocks(&n) {
			left := quota.Stranded(name, stock.Usable, used[n.Name][name])
			if left.Sign() > 0 {
				s := stranding{name, stock.Usable.Value()}
				free[s] += left.Value()
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
