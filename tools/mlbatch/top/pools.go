// SPDX-License-Identifier: Apache-2.0

package top

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// pools are the trees of cohorts.
func (o Objects) pools() (all []Pool) {
	trees := map[string][]Cell{}
	for _, q := range o.ClusterQueues {
		if q.Spec.CohortName != "" {
			root := o.root(q.Spec.CohortName)
			trees[root] = append(trees[root], cells(q)...)
		}
	}
	for _, c := range o.Cohorts {
		root := o.root(kueue.CohortReference(c.Name))
		trees[root] = append(trees[root], quotas(c.Spec.ResourceGroups)...)
	}
	for _, name := range slices.Sorted(maps.Keys(trees)) {
		pool := Pool{Cohort: name, Cells: sum(trees[name])}
		for i, c := range pool.Cells { // what some have borrowed is not unused
			pool.Cells[i].Unused = c.Quota.DeepCopy()
			pool.Cells[i].Unused.Sub(c.Used)
			if pool.Cells[i].Unused.Sign() < 0 {
				pool.Cells[i].Unused = resource.Quantity{}
			}
		}
		all = append(all, pool)
	}
	return all
}

// root is the cohort above all others. A cycle, in which Kueue admits nothing, ends after as many steps as there are
// cohorts.
func (o Objects) root(name kueue.CohortReference) string {
	for range o.Cohorts {
		i := slices.IndexFunc(o.Cohorts, func(c kueue.Cohort) bool { return c.Name == string(name) })
		if i < 0 || o.Cohorts[i].Spec.ParentName == "" {
			break
		}
		name = o.Cohorts[i].Spec.ParentName
	}
	return string(name)
}

// flavors compare all quota with the nodes.
func (o Objects) flavors() (all []Flavor) {
	var promised []Cell
	for _, q := range o.ClusterQueues {
		promised = append(promised, cells(q)...)
	}
	for _, c := range o.Cohorts {
		promised = append(promised, quotas(c.Spec.ResourceGroups)...)
	}
	for _, c := range sum(promised) {
		all = append(all, Flavor{Name: c.Flavor, Resource: c.Resource, Quota: c.Quota, Used: c.Used, Nodes: o.capacity(c)})
	}
	return all
}

// capacity is what the nodes of a flavor have that take pods. It is nil if nodes or flavors are not known, and for
// resources that nodes do not have.
func (o Objects) capacity(c Cell) *resource.Quantity {
	i := slices.IndexFunc(o.Flavors, func(f kueue.ResourceFlavor) bool { return f.Name == c.Flavor })
	if i < 0 || len(o.Nodes) == 0 {
		return nil
	}
	var total resource.Quantity
	for _, node := range o.Nodes {
		if takesPods(node) && has(node, o.Flavors[i].Spec.NodeLabels) {
			total.Add(node.Status.Allocatable[corev1.ResourceName(c.Resource)])
		}
	}
	return &total
}

func takesPods(node corev1.Node) bool {
	ready := slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
	return ready && !node.Spec.Unschedulable
}

func has(node corev1.Node, labels map[string]string) bool {
	for name, value := range labels {
		if node.Labels[name] != value {
			return false
		}
	}
	return true
}
