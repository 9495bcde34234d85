// SPDX-License-Identifier: Apache-2.0

package quota

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/resource"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// Use is what each ClusterQueue uses, by its name.
type Use map[string]map[Cell]resource.Quantity

// Excess is a ClusterQueue or a cohort that uses more of a cell than it may.
type Excess struct {
	Kind, Name string // ClusterQueue or Cohort
	Cell       Cell
	Used, Most resource.Quantity
	// Queues are those whose use counts: the queue, or all queues of the cohort.
	Queues []string
}

// Exceeded returns where the use is more than the quota. Kueue counts the same way: a queue or
// cohort first uses what it does not lend, and the rest of its use is that of its parent, too.
func (t Tree) Exceeded(use Use) []Excess {
	cells := map[Cell]bool{}
	for _, amounts := range use {
		for cell := range amounts {
			cells[cell] = true
		}
	}
	var found []Excess
	for _, cell := range slices.SortedFunc(maps.Keys(cells), Cell.Compare) {
		for _, queue := range t.Queues {
			own := quotaOf(queue.Spec.ResourceGroups, cell)
			e := Excess{Kind: "ClusterQueue", Name: queue.Name, Cell: cell, Used: use[queue.Name][cell], Queues: []string{queue.Name}}
			found = appendExcess(found, e, own.NominalQuota, own.BorrowingLimit, string(queue.Spec.CohortName))
		}
		for _, root := range t.roots() {
			_, found = t.cohortUse(root, cell, use, found)
		}
	}
	return found
}

// appendExcess adds an excess unless the use is within the limit. Without a parent there is
// nothing to borrow from; with one and no limit, the parent's quota decides.
func appendExcess(found []Excess, e Excess, quota resource.Quantity, borrowing *resource.Quantity, parent string) []Excess {
	e.Most = quota.DeepCopy()
	switch {
	case parent != "" && borrowing == nil:
		return found
	case parent != "":
		e.Most.Add(*borrowing)
	}
	if e.Used.Cmp(e.Most) > 0 {
		found = append(found, e)
	}
	return found
}

// cohortUse is what the queues below a cohort use of its quota, and where that is too much.
func (t Tree) cohortUse(name kueue.CohortReference, cell Cell, use Use, found []Excess) (Excess, []Excess) {
	e := Excess{Kind: "Cohort", Name: string(name), Cell: cell}
	for _, queue := range t.Queues {
		if queue.Spec.CohortName == name {
			own := quotaOf(queue.Spec.ResourceGroups, cell)
			e.Used.Add(beyond(use[queue.Name][cell], kept(own.NominalQuota, own.LendingLimit)))
			e.Queues = append(e.Queues, queue.Name)
		}
	}
	for _, child := range t.Cohorts {
		if child.Spec.ParentName == name {
			var below Excess
			below, found = t.cohortUse(kueue.CohortReference(child.Name), cell, use, found)
			own := quotaOf(child.Spec.ResourceGroups, cell)
			e.Used.Add(beyond(below.Used, kept(t.subtree(kueue.CohortReference(child.Name), cell), own.LendingLimit)))
			e.Queues = append(e.Queues, below.Queues...)
		}
	}
	cohort := t.cohort(name)
	own := quotaOf(cohort.Spec.ResourceGroups, cell)
	return e, appendExcess(found, e, t.subtree(name, cell), own.BorrowingLimit, string(cohort.Spec.ParentName))
}

// beyond is the part of a use that exceeds what is kept for it.
func beyond(used, kept resource.Quantity) resource.Quantity {
	if used.Cmp(kept) <= 0 {
		return resource.Quantity{}
	}
	rest := used.DeepCopy()
	rest.Sub(kept)
	return rest
}

// roots are the cohorts without a parent. Cohorts in a circle have none above them: Kueue admits
// nothing there.
func (t Tree) roots() []kueue.CohortReference {
	names := map[kueue.CohortReference]bool{}
	for _, queue := range t.Queues {
		names[queue.Spec.CohortName] = true
	}
	for _, cohort := range t.Cohorts {
		names[kueue.CohortReference(cohort.Name)] = true
		names[cohort.Spec.ParentName] = true
	}
	delete(names, "")
	maps.DeleteFunc(names, func(name kueue.CohortReference, _ bool) bool { return t.cohort(name).Spec.ParentName != "" })
	return slices.Sorted(maps.Keys(names))
}
