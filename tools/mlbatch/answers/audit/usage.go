// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"cmp"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/mlbatch/mlbatch/tools/mlbatch/quota"
)

// account is a unit of Kueue's bookkeeping.
type account struct {
	Queue string
	quota.Cell
}

// Usage is how much of an account one holder uses, and how much Kueue reserves for it.
type Usage struct {
	account
	Holder     Holder
	Used, Held resource.Quantity
	// replaced is the part of used that belongs to terminating pods whose controller has
	// created others in their place.
	replaced resource.Quantity
	// deactivated is quota of a Workload that Kueue already counts as free.
	deactivated resource.Quantity
	pods        []string
}

// claim is what the Workloads of one holder entitle it to.
type claim struct {
	flavors     map[string]map[corev1.ResourceName]account // by pod set
	held        map[account]resource.Quantity
	deactivated map[account]resource.Quantity
	containers  map[string]map[string]bool // names in the template, by pod set
}

// books are what Kueue counts, and for whom.
type books struct {
	lineage
	claimed map[Holder]claim
	covers  coverage
}

func (m Moment) books() books { return books{m.lineage(), m.claims(), m.covered()} }

// Usages returns the usage of all accounts at this moment.
func (m Moment) Usages() []Usage { return m.books().usages(m.Pods) }

func (b books) usages(pods []corev1.Pod) []Usage {
	running := slices.DeleteFunc(slices.Clone(pods), func(p corev1.Pod) bool { return !quota.UsesNode(&p) })
	type key struct {
		holder  Holder
		account account
	}
	found := map[key]*Usage{}
	for _, p := range running {
		holder := b.holder(p)
		c := b.claimed[holder]
		for account, amount := range c.charge(p, b.covers) {
			k := key{holder, account}
			if found[k] == nil {
				found[k] = &Usage{account: account, Holder: holder, Held: c.held[account], deactivated: c.deactivated[account]}
			}
			found[k].add(p, amount, isReplaced(p, running))
		}
	}
	list := make([]Usage, 0, len(found))
	for _, u := range found {
		list = append(list, *u)
	}
	slices.SortFunc(list, func(a, b Usage) int {
		return cmp.Or(cmp.Compare(a.Holder.String(), b.Holder.String()),
			cmp.Compare(a.Queue, b.Queue), a.Compare(b.Cell))
	})
	return list
}

func (u *Usage) add(p corev1.Pod, amount resource.Quantity, replaced bool) {
	u.Used.Add(amount)
	if replaced {
		u.replaced.Add(amount)
	}
	u.pods = append(u.pods, p.Name)
}

// isReplaced reports whether a terminating pod runs next to another pod of the same controller.
func isReplaced(p corev1.Pod, running []corev1.Pod) bool {
	controller := metav1.GetControllerOf(&p)
	return p.DeletionTimestamp != nil && controller != nil && slices.ContainsFunc(running, func(other corev1.Pod) bool {
		c := metav1.GetControllerOf(&other)
		return other.DeletionTimestamp == nil && c != nil && c.UID == controller.UID
	})
}

// claims returns what Kueue reserves at this moment, by holder.
func (m Moment) claims() map[Holder]claim {
	all := map[Holder]claim{}
	for _, w := range m.Workloads {
		if !quota.Holds(&w) {
			continue
		}
		holder := WorkloadHolder(w)
		c, known := all[holder]
		if !known {
			c = claim{
				flavors:     map[string]map[corev1.ResourceName]account{},
				held:        map[account]resource.Quantity{},
				deactivated: map[account]resource.Quantity{},
				containers:  map[string]map[string]bool{},
			}
		}
		amounts := c.held
		if deactivated(w) {
			amounts = c.deactivated // Kueue counts it as free at once: docs/decisions/0004
		}
		for _, assignment := range w.Status.Admission.PodSetAssignments {
			c.take(string(w.Status.Admission.ClusterQueue), assignment, amounts)
		}
		for _, podSet := range w.Spec.PodSets {
			c.containers[string(podSet.Name)] = containerNames(podSet.Template.Spec)
		}
		all[holder] = c
	}
	return all
}

func (c claim) take(queue string, assignment kueue.PodSetAssignment, amounts map[account]resource.Quantity) {
	flavors := map[corev1.ResourceName]account{}
	for name, flavor := range assignment.Flavors {
		flavors[name] = account{queue, quota.Cell{Flavor: flavor, Resource: name}}
	}
	c.flavors[string(assignment.Name)] = flavors
	for name, amount := range assignment.ResourceUsage {
		total := amounts[flavors[name]]
		total.Add(amount)
		amounts[flavors[name]] = total
	}
}

func deactivated(w kueue.Workload) bool { return w.Spec.Active != nil && !*w.Spec.Active }

// charge returns what a pod uses, by account. A pod without a pod set that has quota, and a
// resource that was not assigned, are charged to an account without a queue. A resource that the
// queue does not cover costs nothing.
func (c claim) charge(p corev1.Pod, covered coverage) map[account]resource.Quantity {
	flavors := c.flavors[p.Labels[quota.PodSetLabel]]
	takes := c.requests(p)
	if _, counted := flavors[corev1.ResourcePods]; counted || flavors == nil {
		takes[corev1.ResourcePods] = *resource.NewQuantity(1, resource.DecimalSI)
	}
	charged := map[account]resource.Quantity{}
	for name, amount := range takes {
		on, assigned := flavors[name]
		if amount.IsZero() || !assigned && covered.excludes(flavors, name) {
			continue
		}
		if !assigned {
			on = account{Cell: quota.Cell{Resource: name}}
		}
		charged[on] = amount
	}
	return charged
}

// requests is what a pod requests. The CPU and memory of containers that webhooks add to pods,
// such as those of a service mesh, do not count: Kueue could not know them.
func (c claim) requests(p corev1.Pod) corev1.ResourceList {
	if known := c.containers[p.Labels[quota.PodSetLabel]]; known != nil {
		p.Spec.Containers = withoutInjected(p.Spec.Containers, known)
		p.Spec.InitContainers = withoutInjected(p.Spec.InitContainers, known)
	}
	requests := maps.Clone(quota.Requests(&p))
	if requests == nil {
		requests = corev1.ResourceList{}
	}
	return requests
}

func containerNames(spec corev1.PodSpec) map[string]bool {
	names := map[string]bool{}
	for _, c := range slices.Concat(spec.Containers, spec.InitContainers) {
		names[c.Name] = true
	}
	return names
}

func withoutInjected(containers []corev1.Container, known map[string]bool) []corev1.Container {
	counted := slices.Clone(containers)
	for i, c := range counted {
		if known[c.Name] {
			continue
		}
		counted[i].Resources.Requests = maps.Clone(c.Resources.Requests)
		for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage} {
			delete(counted[i].Resources.Requests, name)
		}
	}
	return counted
}

// coverage has the resources that each ClusterQueue has quota for.
type coverage map[string]map[corev1.ResourceName]bool

func (m Moment) covered() coverage {
	all := coverage{}
	for _, q := range m.Queues {
		all[q.Name] = map[corev1.ResourceName]bool{}
		for _, group := range q.Spec.ResourceGroups {
			for _, name := range group.CoveredResources {
				all[q.Name][name] = true
			}
		}
	}
	return all
}

// excludes reports whether the queue of a pod set is known, and has no quota for a resource.
func (c coverage) excludes(flavors map[corev1.ResourceName]account, name corev1.ResourceName) bool {
	for _, a := range flavors {
		queue, known := c[a.Queue]
		return known && !queue[name]
	}
	return false
}
