// SPDX-License-Identifier: Apache-2.0

package quota

import (
	"cmp"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// Tree is the quota of a cluster: all its ClusterQueues and Cohorts.
type Tree struct {
	Queues  []kueue.ClusterQueue
	Cohorts []kueue.Cohort
}

// Cell is the unit of quota: one resource in one flavor.
type Cell struct {
	Flavor   kueue.ResourceFlavorReference
	Resource corev1.ResourceName
}

func (c Cell) String() string { return fmt.Sprintf("ResourceFlavor %s, %s", c.Flavor, c.Resource) }

// Compare sorts cells by name.
func (c Cell) Compare(other Cell) int {
	return cmp.Or(cmp.Compare(c.Flavor, other.Flavor), cmp.Compare(c.Resource, other.Resource))
}

// circular reports whether the chain of parents of the queue's cohort has a cycle.
func (t Tree) circular(queue kueue.ClusterQueue) bool {
	name := queue.Spec.CohortName
	for range len(t.Cohorts) + 1 {
		if name == "" {
			return false
		}
		name = t.cohort(name).Spec.ParentName
	}
	return name != ""
}

// most is what a queue can use of a cell while no other queue uses anything: its own quota
// and what its cohort can lend, up to its borrowing limit.
func (t Tree) most(queue kueue.ClusterQueue, cell Cell) resource.Quantity {
	own := quotaOf(queue.Spec.ResourceGroups, cell)
	return t.borrowed(own.NominalQuota, own, queue.Spec.CohortName, cell)
}

// borrowed is what a queue or cohort can use in total: the quota of its subtree, and what it
// can borrow from its parent.
func (t Tree) borrowed(subtree resource.Quantity, own kueue.ResourceQuota, parent kueue.CohortReference, cell Cell) resource.Quantity {
	if parent == "" {
		return subtree
	}
	most := kept(subtree, own.LendingLimit)
	cohort := t.cohort(parent)
	most.Add(t.borrowed(t.subtree(parent, cell), quotaOf(cohort.Spec.ResourceGroups, cell), cohort.Spec.ParentName, cell))
	if own.BorrowingLimit != nil {
		limit := subtree.DeepCopy()
		limit.Add(*own.BorrowingLimit)
		if limit.Cmp(most) < 0 {
			return limit
		}
	}
	return most
}

// subtree is the quota of a cohort: its own, and what its queues and child cohorts lend.
func (t Tree) subtree(name kueue.CohortReference, cell Cell) resource.Quantity {
	all := quotaOf(t.cohort(name).Spec.ResourceGroups, cell).NominalQuota.DeepCopy()
	for _, queue := range t.Queues {
		if queue.Spec.CohortName == name {
			own := quotaOf(queue.Spec.ResourceGroups, cell)
			all.Add(lent(own.NominalQuota, own.LendingLimit))
		}
	}
	for _, cohort := range t.Cohorts {
		if cohort.Spec.ParentName == name {
			own := quotaOf(cohort.Spec.ResourceGroups, cell)
			all.Add(lent(t.subtree(kueue.CohortReference(cohort.Name), cell), own.LendingLimit))
		}
	}
	return all
}

// cohort returns an empty Cohort if there is no such object: a cohort may exist only because
// a queue names it.
func (t Tree) cohort(name kueue.CohortReference) kueue.Cohort {
	for _, cohort := range t.Cohorts {
		if cohort.Name == string(name) {
			return cohort
		}
	}
	return kueue.Cohort{}
}

// kept is the part of a quota that a lending limit keeps from others; without a limit, none.
func kept(quota resource.Quantity, limit *resource.Quantity) resource.Quantity {
	if limit == nil || limit.Cmp(quota) >= 0 {
		return resource.Quantity{}
	}
	rest := quota.DeepCopy()
	rest.Sub(*limit)
	return rest
}

// lent is the part of a quota that others can borrow.
func lent(quota resource.Quantity, limit *resource.Quantity) resource.Quantity {
	rest := quota.DeepCopy()
	rest.Sub(kept(quota, limit))
	return rest
}

// quotaOf returns the quota of a cell, which is zero if no group has it.
func quotaOf(groups []kueue.ResourceGroup, cell Cell) kueue.ResourceQuota {
	own, _ := Own(groups, cell)
	return own
}

// Own is the quota of a cell, if there is any.
func Own(groups []kueue.ResourceGroup, cell Cell) (own kueue.ResourceQuota, known bool) {
	eachQuota(groups, func(c Cell, q kueue.ResourceQuota) {
		if c == cell && !known {
			own, known = q, true
		}
	})
	return own, known
}

func eachQuota(groups []kueue.ResourceGroup, do func(Cell, kueue.ResourceQuota)) {
	for _, group := range groups {
		for _, flavor := range group.Flavors {
			for _, q := range flavor.Resources {
				do(Cell{flavor.Name, q.Name}, q)
			}
		}
	}
}

// Reserved is what Kueue has reserved of a cell, which other work cannot have.
func Reserved(queue kueue.ClusterQueue, cell Cell) (kueue.ResourceUsage, bool) {
	for _, flavor := range queue.Status.FlavorsReservation {
		for _, use := range flavor.Resources {
			if cell == (Cell{flavor.Name, use.Name}) {
				return use, true
			}
		}
	}
	return kueue.ResourceUsage{}, false
}

// Root is the cohort above a cohort that has none above itself. A cycle, in which Kueue admits nothing, ends after as
// many steps as there are cohorts.
func (t Tree) Root(name kueue.CohortReference) kueue.CohortReference {
	for range t.Cohorts {
		above := t.cohort(name).Spec.ParentName
		if above == "" {
			break
		}
		name = above
	}
	return name
}
