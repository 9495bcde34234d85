// SPDX-License-Identifier: Apache-2.0

// Package quotawatch checks, while stories run on a cluster, that the pods of AppWrappers use
// no more than the quota that Kueue reserves for them. It checks every revision at which a pod
// or a Workload changed, and changes nothing.
//
// Pods and Workloads reach a client through two watches, and either may be ahead. So the events
// only name revisions; pods and Workloads are then read as they were at each revision.
package quotawatch

import (
	"cmp"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	resourcehelper "k8s.io/component-helpers/resource"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	workload "github.com/mlbatch/mlbatch/controller/api/v1beta2"
)

// podSetLabel is Kueue's label for the pod set of a Workload that a pod belongs to.
const podSetLabel = "kueue.x-k8s.io/podset"

// Moment is what the API server stored at one revision.
type Moment struct {
	Revision  string
	Pods      []corev1.Pod // those of AppWrappers
	Workloads []kueue.Workload
}

// account is a unit of Kueue's bookkeeping.
type account struct {
	queue, flavor string
	resource      corev1.ResourceName
}

// entry is how much of an account one AppWrapper uses, and how much Kueue reserves for it.
type entry struct {
	account
	appWrapper types.NamespacedName
	used, held resource.Quantity
	// replaced is the part of used that belongs to terminating pods whose controller has
	// created others in their place.
	replaced resource.Quantity
	// deactivated is quota of a Workload that Kueue already counts as free.
	deactivated resource.Quantity
	pods        []string
}

// claim is what the Workloads of one AppWrapper entitle it to.
type claim struct {
	flavors     map[string]map[corev1.ResourceName]account // by pod set
	held        map[account]resource.Quantity
	deactivated map[account]resource.Quantity
}

// entries returns the usage of all accounts at this moment.
func (m Moment) entries() []entry {
	claims := claims(m.Workloads)
	running := slices.DeleteFunc(slices.Clone(m.Pods), func(p corev1.Pod) bool { return !uses(p) })
	type key struct {
		appWrapper types.NamespacedName
		account    account
	}
	found := map[key]*entry{}
	for _, p := range running {
		owner := appWrapperOf(p)
		c := claims[owner]
		for account, amount := range c.charge(p) {
			k := key{owner, account}
			if found[k] == nil {
				found[k] = &entry{account: account, appWrapper: owner, held: c.held[account], deactivated: c.deactivated[account]}
			}
			found[k].add(p, amount, isReplaced(p, running))
		}
	}
	list := make([]entry, 0, len(found))
	for _, e := range found {
		list = append(list, *e)
	}
	slices.SortFunc(list, func(a, b entry) int {
		return cmp.Or(cmp.Compare(a.appWrapper.String(), b.appWrapper.String()),
			cmp.Compare(a.queue, b.queue), cmp.Compare(a.flavor, b.flavor), cmp.Compare(a.resource, b.resource))
	})
	return list
}

func (e *entry) add(p corev1.Pod, amount resource.Quantity, replaced bool) {
	e.used.Add(amount)
	if replaced {
		e.replaced.Add(amount)
	}
	e.pods = append(e.pods, p.Name)
}

// uses reports whether a pod occupies a node. A terminating pod does until it has ended.
func uses(p corev1.Pod) bool {
	return p.Spec.NodeName != "" && (p.Status.Phase == corev1.PodPending || p.Status.Phase == corev1.PodRunning)
}

// isReplaced reports whether a terminating pod runs next to another pod of the same controller.
func isReplaced(p corev1.Pod, running []corev1.Pod) bool {
	controller := metav1.GetControllerOf(&p)
	return p.DeletionTimestamp != nil && controller != nil && slices.ContainsFunc(running, func(other corev1.Pod) bool {
		c := metav1.GetControllerOf(&other)
		return other.DeletionTimestamp == nil && c != nil && c.UID == controller.UID
	})
}

func appWrapperOf(p corev1.Pod) types.NamespacedName {
	return types.NamespacedName{Namespace: p.Namespace, Name: p.Labels[workload.AppWrapperLabel]}
}

// claims returns what Kueue reserves at this moment, by AppWrapper.
func claims(workloads []kueue.Workload) map[types.NamespacedName]claim {
	all := map[types.NamespacedName]claim{}
	for _, w := range workloads {
		owner, owned := ownerOf(w)
		if !owned || !holdsQuota(w) {
			continue
		}
		c, known := all[owner]
		if !known {
			c = claim{
				flavors:     map[string]map[corev1.ResourceName]account{},
				held:        map[account]resource.Quantity{},
				deactivated: map[account]resource.Quantity{},
			}
		}
		amounts := c.held
		if w.Spec.Active != nil && !*w.Spec.Active {
			amounts = c.deactivated // Kueue counts it as free at once: docs/decisions/0004
		}
		for _, assignment := range w.Status.Admission.PodSetAssignments {
			c.take(string(w.Status.Admission.ClusterQueue), assignment, amounts)
		}
		all[owner] = c
	}
	return all
}

func (c claim) take(queue string, assignment kueue.PodSetAssignment, amounts map[account]resource.Quantity) {
	flavors := map[corev1.ResourceName]account{}
	for name, flavor := range assignment.Flavors {
		flavors[name] = account{queue, string(flavor), name}
	}
	c.flavors[string(assignment.Name)] = flavors
	for name, amount := range assignment.ResourceUsage {
		total := amounts[flavors[name]]
		total.Add(amount)
		amounts[flavors[name]] = total
	}
}

func ownerOf(w kueue.Workload) (types.NamespacedName, bool) {
	for _, o := range w.OwnerReferences {
		if o.Kind == workload.AppWrapperKind && o.APIVersion == workload.GroupVersion.String() {
			return types.NamespacedName{Namespace: w.Namespace, Name: o.Name}, true
		}
	}
	return types.NamespacedName{}, false
}

func holdsQuota(w kueue.Workload) bool {
	return w.Status.Admission != nil &&
		meta.IsStatusConditionTrue(w.Status.Conditions, kueue.WorkloadQuotaReserved) &&
		!meta.IsStatusConditionTrue(w.Status.Conditions, kueue.WorkloadFinished)
}

// charge returns what a pod uses, by account. A pod without a pod set that has quota, and a
// resource that was not assigned, are charged to an account without a queue.
func (c claim) charge(p corev1.Pod) map[account]resource.Quantity {
	flavors := c.flavors[p.Labels[podSetLabel]]
	takes := maps.Clone(resourcehelper.PodRequests(&p, resourcehelper.PodResourcesOptions{}))
	if takes == nil {
		takes = corev1.ResourceList{}
	}
	if _, counted := flavors[corev1.ResourcePods]; counted || flavors == nil {
		takes[corev1.ResourcePods] = *resource.NewQuantity(1, resource.DecimalSI)
	}
	charged := map[account]resource.Quantity{}
	for name, amount := range takes {
		if amount.IsZero() {
			continue
		}
		on, assigned := flavors[name]
		if !assigned {
			on = account{resource: name}
		}
		charged[on] = amount
	}
	return charged
}
