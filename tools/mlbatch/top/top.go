// SPDX-License-Identifier: Apache-2.0

// Package top answers: which team has how much quota, who uses, borrows and lends it, and do the nodes have what
// is promised?
package top

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/mlbatch/mlbatch/tools/mlbatch/queuefit"
)

// Objects are what was read. Without ClusterQueues, only LocalQueues of one namespace are known.
type Objects struct {
	LocalQueues   []kueue.LocalQueue
	ClusterQueues []kueue.ClusterQueue
	Cohorts       []kueue.Cohort
	Flavors       []kueue.ResourceFlavor
	Nodes         []corev1.Node
	// Unread says in sentences what could not be read.
	Unread []string
}

// Overview is the answer.
type Overview struct {
	Teams   []Team   `json:"teams,omitempty"`
	Cohorts []Pool   `json:"cohorts,omitempty"`
	Flavors []Flavor `json:"flavors,omitempty"`
	// Queues are those of a member who may not see teams.
	Queues []Queue `json:"queues,omitempty"`
	// Notes say what could not be read, and where more is promised than there is.
	Notes []string `json:"notes,omitempty"`
}

// Team is a ClusterQueue with the namespaces that use it.
type Team struct {
	Name       string   `json:"name"`
	Cohort     string   `json:"cohort,omitempty"`
	Namespaces []string `json:"namespaces,omitempty"`
	Pending    int32    `json:"pending"`
	Running    int32    `json:"running"`
	// Inactive is why nothing is admitted.
	Inactive string `json:"inactive,omitempty"`
	Quota    []Cell `json:"quota"`
}

// Cell is the quota of one resource in one flavor.
type Cell struct {
	Flavor   string            `json:"flavor"`
	Resource string            `json:"resource"`
	Quota    resource.Quantity `json:"quota"`
	Used     resource.Quantity `json:"used"`
	// Borrowed is what is used beyond the quota.
	Borrowed resource.Quantity `json:"borrowed"`
	// Unused is what others may borrow, if the lending limit allows it.
	Unused resource.Quantity `json:"unused"`
}

// Pool is a cohort with all below it. Kueue does not record which of its teams lends to which.
type Pool struct {
	Cohort string `json:"cohort"`
	Cells  []Cell `json:"quota"`
}

// Flavor compares the quota that is promised with the nodes.
type Flavor struct {
	Name     string            `json:"name"`
	Resource string            `json:"resource"`
	Quota    resource.Quantity `json:"quota"`
	Used     resource.Quantity `json:"used"`
	// Nodes is what the nodes that take pods have, or nil if they are not known.
	Nodes *resource.Quantity `json:"nodes,omitempty"`
}

// Queue is a LocalQueue.
type Queue struct {
	Name         string `json:"name"`
	Namespace    string `json:"namespace"`
	ClusterQueue string `json:"clusterQueue"`
	Pending      int32  `json:"pending"`
	Running      int32  `json:"running"`
	Used         []Cell `json:"used,omitempty"`
}

// Judge makes an overview of objects.
func Judge(o Objects) Overview {
	answer := Overview{Notes: o.Unread}
	if o.ClusterQueues == nil {
		for _, q := range o.LocalQueues {
			answer.Queues = append(answer.Queues, queueOf(q))
		}
		return answer
	}
	for _, q := range o.ClusterQueues {
		answer.Teams = append(answer.Teams, o.team(q))
	}
	slices.SortFunc(answer.Teams, func(a, b Team) int { return cmp.Or(cmp.Compare(a.Cohort, b.Cohort), cmp.Compare(a.Name, b.Name)) })
	answer.Cohorts, answer.Flavors = o.pools(), o.flavors()
	answer.Notes = append(answer.Notes, answer.troubles()...)
	return answer
}

// troubles are teams whose work cannot start, and more quota than nodes.
func (o Overview) troubles() (all []string) {
	for _, t := range o.Teams {
		if t.Inactive != "" {
			all = append(all, fmt.Sprintf("team %s is not active: %s", t.Name, t.Inactive))
		}
	}
	for _, f := range o.Flavors {
		if f.Nodes != nil && f.Quota.Cmp(*f.Nodes) > 0 {
			all = append(all, fmt.Sprintf("the quota of %s in flavor %s is %s, but the nodes that take its pods have %s", f.Resource, f.Name, &f.Quota, f.Nodes))
		}
	}
	return all
}

func (o Objects) team(q kueue.ClusterQueue) Team {
	t := Team{Name: q.Name, Cohort: string(q.Spec.CohortName), Pending: q.Status.PendingWorkloads, Running: q.Status.AdmittedWorkloads, Quota: cells(q)}
	if c := meta.FindStatusCondition(q.Status.Conditions, kueue.ClusterQueueActive); c != nil && c.Status == "False" {
		t.Inactive = cmp.Or(c.Message, c.Reason)
	}
	for _, l := range o.LocalQueues {
		if string(l.Spec.ClusterQueue) == q.Name && !slices.Contains(t.Namespaces, l.Namespace) {
			t.Namespaces = append(t.Namespaces, l.Namespace)
		}
	}
	slices.Sort(t.Namespaces)
	return t
}

// cells are the quota and the use of a ClusterQueue.
func cells(q kueue.ClusterQueue) []Cell {
	all := quotas(q.Spec.ResourceGroups)
	for _, flavor := range q.Status.FlavorsReservation {
		for _, use := range flavor.Resources {
			i := slices.IndexFunc(all, func(c Cell) bool { return c.key() == key(flavor.Name, use.Name) })
			if i < 0 {
				continue // the quota was removed, and the work has not gone yet
			}
			all[i].Used, all[i].Borrowed = use.Total, use.Borrowed
			all[i].Unused.Sub(use.Total)
			if all[i].Unused.Sign() < 0 {
				all[i].Unused = resource.Quantity{}
			}
		}
	}
	return all
}

func quotas(groups []kueue.ResourceGroup) (all []Cell) {
	for _, group := range groups {
		for _, flavor := range group.Flavors {
			for _, r := range flavor.Resources {
				all = append(all, Cell{Flavor: string(flavor.Name), Resource: string(r.Name), Quota: r.NominalQuota, Unused: r.NominalQuota.DeepCopy()})
			}
		}
	}
	return all
}

func key(flavor kueue.ResourceFlavorReference, name corev1.ResourceName) queuefit.Cell {
	return queuefit.Cell{Flavor: flavor, Resource: name}
}

func (c Cell) key() queuefit.Cell {
	return key(kueue.ResourceFlavorReference(c.Flavor), corev1.ResourceName(c.Resource))
}

// sum adds the cells of several queues, in the order in which they come first.
func sum(all []Cell) (sums []Cell) {
	for _, c := range all {
		i := slices.IndexFunc(sums, func(s Cell) bool { return s.key() == c.key() })
		if i < 0 {
			i = len(sums)
			sums = append(sums, Cell{Flavor: c.Flavor, Resource: c.Resource})
		}
		sums[i].Quota.Add(c.Quota)
		sums[i].Used.Add(c.Used)
		sums[i].Borrowed.Add(c.Borrowed)
		sums[i].Unused.Add(c.Unused)
	}
	return sums
}

func queueOf(l kueue.LocalQueue) Queue {
	q := Queue{Name: l.Name, Namespace: l.Namespace, ClusterQueue: string(l.Spec.ClusterQueue), Pending: l.Status.PendingWorkloads, Running: l.Status.AdmittedWorkloads}
	for _, flavor := range l.Status.FlavorsReservation {
		for _, use := range flavor.Resources {
			q.Used = append(q.Used, Cell{Flavor: string(flavor.Name), Resource: string(use.Name), Used: use.Total})
		}
	}
	return q
}
