// SPDX-License-Identifier: Apache-2.0

package queuefit

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// Quota is the quota of a cluster: all its ClusterQueues and Cohorts.
type Quota struct {
	Queues  []kueue.ClusterQueue
	Cohorts []kueue.Cohort
}

// Cell is the unit of quota: one resource in one flavor.
type Cell struct {
	Flavor   kueue.ResourceFlavorReference
	Resource corev1.ResourceName
}

// circular reports whether the chain of parents of the queue's cohort has a cycle.
func (q Quota) circular(queue kueue.ClusterQueue) bool {
	name := queue.Spec.CohortName
	for range len(q.Cohorts) + 1 {
		if name == "" {
			return false
		}
		name = q.cohort(name).Spec.ParentName
	}
	return name != ""
}

// most is what a queue can use of a cell while no other queue uses anything: its own quota
// and what its cohort can lend, up to its borrowing limit.
func (q Quota) most(queue kueue.ClusterQueue, cell Cell) resource.Quantity {
	own := quotaOf(queue.Spec.ResourceGroups, cell)
	return q.borrowed(own.NominalQuota, own, queue.Spec.CohortName, cell)
}

// borrowed is what a queue or cohort can use in total: the quota of its subtree, and what it
// can borrow from its parent.
func (q Quota) borrowed(subtree resource.Quantity, own kueue.ResourceQuota, parent kueue.CohortReference, cell Cell) resource.Quantity {
	if parent == "" {
		return subtree
	}
	most := kept(subtree, own.LendingLimit)
	cohort := q.cohort(parent)
	most.Add(q.borrowed(q.subtree(parent, cell), quotaOf(cohort.Spec.ResourceGroups, cell), cohort.Spec.ParentName, cell))
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
func (q Quota) subtree(name kueue.CohortReference, cell Cell) resource.Quantity {
	all := quotaOf(q.cohort(name).Spec.ResourceGroups, cell).NominalQuota.DeepCopy()
	for _, queue := range q.Queues {
		if queue.Spec.CohortName == name {
			own := quotaOf(queue.Spec.ResourceGroups, cell)
			all.Add(lent(own.NominalQuota, own.LendingLimit))
		}
	}
	for _, cohort := range q.Cohorts {
		if cohort.Spec.ParentName == name {
			own := quotaOf(cohort.Spec.ResourceGroups, cell)
			all.Add(lent(q.subtree(kueue.CohortReference(cohort.Name), cell), own.LendingLimit))
		}
	}
	return all
}

// cohort returns an empty Cohort if there is no such object: a cohort may exist only because
// a queue names it.
func (q Quota) cohort(name kueue.CohortReference) kueue.Cohort {
	for _, cohort := range q.Cohorts {
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
	for _, group := range groups {
		for _, flavor := range group.Flavors {
			if flavor.Name != cell.Flavor {
				continue
			}
			for _, quota := range flavor.Resources {
				if quota.Name == cell.Resource {
					return quota
				}
			}
		}
	}
	return kueue.ResourceQuota{}
}
