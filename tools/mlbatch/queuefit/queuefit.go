// SPDX-License-Identifier: Apache-2.0

// Package queuefit answers: can this job ever be admitted by that queue? A job
// that asks for more than its queue will ever have waits without end and without
// a word. It computes, and talks to nobody. It counts as a Kueue does that is
// not told to leave resources out or to count them as others: where it is
// (excludeResourcePrefixes, transformations), what it finds may be wrong. That
// it finds nothing promises nothing: taints and topologies are not looked at.
package queuefit

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// PodSet is a number of equal pods.
type PodSet struct {
	Count    int64
	Requests corev1.ResourceList
	// PriorityClass is that of the pods.
	PriorityClass string
}

// total is what all of the pods ask for.
func (p PodSet) total() corev1.ResourceList {
	all := corev1.ResourceList{}
	for name, amount := range p.Requests {
		amount = amount.DeepCopy()
		amount.Mul(p.Count)
		all[name] = amount
	}
	return all
}

// Reasons says why a queue can never admit the pod sets, in sentences.
func Reasons(podSets []PodSet, queue kueue.ClusterQueue, quota Quota) []string {
	if quota.circular(queue) {
		return []string{fmt.Sprintf("the cohort %s of ClusterQueue %s is its own ancestor, so that Kueue admits nothing", queue.Spec.CohortName, queue.Name)}
	}
	var reasons []string
	asked := sum(podSets)
	if _, counted := group(queue, corev1.ResourcePods); counted {
		asked[corev1.ResourcePods] = *resource.NewQuantity(pods(podSets), resource.DecimalSI)
	}
	for _, name := range slices.Sorted(maps.Keys(asked)) {
		amount := asked[name]
		in, covered := group(queue, name)
		if !covered && amount.IsZero() {
			continue // Kueue does not count it
		}
		if !covered {
			reasons = append(reasons, fmt.Sprintf("ClusterQueue %s has no quota for %s, of which the job asks for %s", queue.Name, name, &amount))
			continue
		}
		if most := everything(in, name, queue, quota); amount.Cmp(most) > 0 {
			reasons = append(reasons, fmt.Sprintf("the job asks for %s of %s, and ClusterQueue %s can never have more than %s, what it may borrow included",
				&amount, name, queue.Name, &most))
		}
	}
	if len(reasons) > 0 {
		return reasons
	}
	return flavorless(podSets, queue, quota)
}

// flavorless finds pod sets that fit into the sum of all flavors and into none of them:
// all pods of a set are given the same.
func flavorless(podSets []PodSet, queue kueue.ClusterQueue, quota Quota) []string {
	var reasons []string
	for i, podSet := range podSets {
		total := podSet.total()
		for _, in := range queue.Spec.ResourceGroups {
			fits := slices.ContainsFunc(in.Flavors, func(flavor kueue.FlavorQuotas) bool {
				return len(tooMuch(total, in, flavor.Name, queue, quota)) == 0
			})
			if fits {
				continue
			}
			var why []string
			for _, flavor := range in.Flavors {
				why = append(why, fmt.Sprintf("%s has too little %s", flavor.Name, strings.Join(tooMuch(total, in, flavor.Name, queue, quota), " and ")))
			}
			reasons = append(reasons, fmt.Sprintf("no flavor of ClusterQueue %s can ever hold pod set %d of the job: %s", queue.Name, i+1, strings.Join(why, ", ")))
		}
	}
	return reasons
}

// tooMuch are the resources of a group of which a flavor can never have as much as is asked for.
func tooMuch(asked corev1.ResourceList, in kueue.ResourceGroup, flavor kueue.ResourceFlavorReference, queue kueue.ClusterQueue, quota Quota) []string {
	var names []string
	for _, name := range in.CoveredResources {
		amount, is := asked[name]
		if !is {
			continue
		}
		if most := quota.most(queue, Cell{flavor, name}); amount.Cmp(most) > 0 {
			names = append(names, string(name))
		}
	}
	return names
}

// everything is the most of a resource that a queue can have, of all flavors together.
func everything(in kueue.ResourceGroup, name corev1.ResourceName, queue kueue.ClusterQueue, quota Quota) resource.Quantity {
	var all resource.Quantity
	for _, flavor := range in.Flavors {
		all.Add(quota.most(queue, Cell{flavor.Name, name}))
	}
	return all
}

// group is the one in which a queue has quota for a resource.
func group(queue kueue.ClusterQueue, name corev1.ResourceName) (kueue.ResourceGroup, bool) {
	for _, in := range queue.Spec.ResourceGroups {
		if slices.Contains(in.CoveredResources, name) {
			return in, true
		}
	}
	return kueue.ResourceGroup{}, false
}

func sum(podSets []PodSet) corev1.ResourceList {
	all := corev1.ResourceList{}
	for _, podSet := range podSets {
		for name, amount := range podSet.total() {
			so := all[name]
			so.Add(amount)
			all[name] = so
		}
	}
	return all
}

func pods(podSets []PodSet) int64 {
	var all int64
	for _, podSet := range podSets {
		all += podSet.Count
	}
	return all
}
