// SPDX-License-Identifier: Apache-2.0

// Package quota answers: what is promised to whom, what is used of it, and do the nodes have it? Kueue lets a job that
// requests more than its queue can ever have wait forever, without an error. The package
// only computes; it does not call an API.
//
// It counts resources as Kueue does by default. If Kueue is configured to exclude or
// transform resources (excludeResourcePrefixes, transformations), its reasons may be wrong.
// No reason does not mean that the job will be admitted: taints and topologies are ignored.
package quota

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// PodSet is a number of identical pods.
type PodSet struct {
	Count         int64
	Requests      corev1.ResourceList // of one pod
	PriorityClass string
}

// total is the sum of the requests of all pods.
func (p PodSet) total() corev1.ResourceList {
	total := corev1.ResourceList{}
	for name, amount := range p.Requests {
		amount = amount.DeepCopy()
		amount.Mul(p.Count)
		total[name] = amount
	}
	return total
}

// Reasons returns sentences that say why a queue can never admit the pod sets of a job. It
// returns none if the queue may admit them.
func Reasons(podSets []PodSet, queue kueue.ClusterQueue, tree Tree) []string {
	if tree.circular(queue) {
		return []string{fmt.Sprintf("cohort %s of ClusterQueue %s is its own ancestor, so Kueue admits nothing", queue.Spec.CohortName, queue.Name)}
	}
	var reasons []string
	requests := sum(podSets)
	if _, counted := groupOf(queue, corev1.ResourcePods); counted {
		requests[corev1.ResourcePods] = *resource.NewQuantity(countPods(podSets), resource.DecimalSI)
	}
	for _, name := range slices.Sorted(maps.Keys(requests)) {
		amount := requests[name]
		group, covered := groupOf(queue, name)
		if !covered && amount.IsZero() {
			continue // Kueue does not count it
		}
		if !covered {
			reasons = append(reasons, fmt.Sprintf("the job requests %s of %s, but ClusterQueue %s has no quota for it", &amount, name, queue.Name))
			continue
		}
		if most := mostOfAllFlavors(group, name, queue, tree); amount.Cmp(most) > 0 {
			reasons = append(reasons, fmt.Sprintf("the job requests %s of %s, but ClusterQueue %s can have at most %s, including what it can borrow",
				&amount, name, queue.Name, &most))
		}
	}
	if len(reasons) > 0 {
		return reasons
	}
	return withoutFlavor(podSets, queue, tree)
}

// withoutFlavor returns a reason for each pod set that fits into all flavors together but
// into none of them: Kueue assigns one flavor to all pods of a pod set.
func withoutFlavor(podSets []PodSet, queue kueue.ClusterQueue, tree Tree) []string {
	var reasons []string
	for i, podSet := range podSets {
		total := podSet.total()
		for _, group := range queue.Spec.ResourceGroups {
			fits := slices.ContainsFunc(group.Flavors, func(flavor kueue.FlavorQuotas) bool {
				return len(exceeded(total, group, flavor.Name, queue, tree)) == 0
			})
			if fits {
				continue
			}
			var shortages []string
			for _, flavor := range group.Flavors {
				names := strings.Join(exceeded(total, group, flavor.Name, queue, tree), " and ")
				shortages = append(shortages, fmt.Sprintf("%s has too little %s", flavor.Name, names))
			}
			reasons = append(reasons, fmt.Sprintf("no flavor of ClusterQueue %s can ever hold pod set %d of the job: %s", queue.Name, i+1, strings.Join(shortages, ", ")))
		}
	}
	return reasons
}

// exceeded returns the resources of a group that the requests exceed in one flavor.
func exceeded(requests corev1.ResourceList, group kueue.ResourceGroup, flavor kueue.ResourceFlavorReference, queue kueue.ClusterQueue, tree Tree) []string {
	var names []string
	for _, name := range group.CoveredResources {
		amount, requested := requests[name]
		if !requested {
			continue
		}
		if most := tree.most(queue, Cell{flavor, name}); amount.Cmp(most) > 0 {
			names = append(names, string(name))
		}
	}
	return names
}

// mostOfAllFlavors is the most of a resource that a queue can ever have, summed over the
// flavors of the resource's group.
func mostOfAllFlavors(group kueue.ResourceGroup, name corev1.ResourceName, queue kueue.ClusterQueue, tree Tree) resource.Quantity {
	var total resource.Quantity
	for _, flavor := range group.Flavors {
		total.Add(tree.most(queue, Cell{flavor.Name, name}))
	}
	return total
}

// groupOf returns the resource group in which a queue has quota for a resource.
func groupOf(queue kueue.ClusterQueue, name corev1.ResourceName) (kueue.ResourceGroup, bool) {
	for _, group := range queue.Spec.ResourceGroups {
		if slices.Contains(group.CoveredResources, name) {
			return group, true
		}
	}
	return kueue.ResourceGroup{}, false
}

func sum(podSets []PodSet) corev1.ResourceList {
	total := corev1.ResourceList{}
	for _, podSet := range podSets {
		for name, amount := range podSet.total() {
			sum := total[name]
			sum.Add(amount)
			total[name] = sum
		}
	}
	return total
}

func countPods(podSets []PodSet) int64 {
	var count int64
	for _, podSet := range podSets {
		count += podSet.Count
	}
	return count
}
