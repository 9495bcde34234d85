// SPDX-License-Identifier: Apache-2.0

package quota

import (
	"k8s.io/apimachinery/pkg/api/resource"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// Available is how much more of a cell a queue gets now without preemption: what is left of its own quota, and what its
// cohorts can lend. Kueue computes it in the same way (pkg/cache/scheduler/resource_node.go, available).
func (t Tree) Available(queue kueue.ClusterQueue, cell Cell) resource.Quantity {
	if t.circular(queue) || Inactive(queue.Status.Conditions) != nil {
		return resource.Quantity{}
	}
	use := Use{}
	for _, q := range t.Queues {
		reserved, _ := Reserved(q, cell)
		use[q.Name] = map[Cell]resource.Quantity{cell: reserved.Total}
	}
	own := quotaOf(queue.Spec.ResourceGroups, cell)
	return beyond(t.left(own.NominalQuota, own, use[queue.Name][cell], queue.Spec.CohortName, cell, use), resource.Quantity{})
}

// left is what remains of a subtree, and of what its parent can lend. It is negative if more is used than there is.
func (t Tree) left(subtree resource.Quantity, own kueue.ResourceQuota, used resource.Quantity, parent kueue.CohortReference, cell Cell, use Use) resource.Quantity {
	if parent == "" {
		return minus(subtree, used)
	}
	kept := kept(subtree, own.LendingLimit)
	above, _ := t.cohortUse(parent, cell, use, nil)
	cohort := t.cohort(parent)
	all := t.left(t.subtree(parent, cell), quotaOf(cohort.Spec.ResourceGroups, cell), above.Used, cohort.Spec.ParentName, cell, use)
	if own.BorrowingLimit != nil {
		most := minus(minus(subtree, kept), beyond(used, kept))
		most.Add(*own.BorrowingLimit)
		if most.Cmp(all) < 0 {
			all = most
		}
	}
	all.Add(beyond(kept, used))
	return all
}

func minus(all, part resource.Quantity) resource.Quantity {
	rest := all.DeepCopy()
	rest.Sub(part)
	return rest
}
