// SPDX-License-Identifier: Apache-2.0

// Package top answers: what can a team start now, which team has how much quota, who uses, borrows and lends it, and do
// the nodes have what is promised?
package top

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/mlbatch/mlbatch/controller/nodesigns"
	"github.com/mlbatch/mlbatch/tools/mlbatch/quota"
)

// Objects are what was read. Without ClusterQueues, only LocalQueues of one namespace are known.
type Objects struct {
	LocalQueues   []kueue.LocalQueue
	ClusterQueues []kueue.ClusterQueue
	Cohorts       []kueue.Cohort
	Flavors       []kueue.ResourceFlavor
	Nodes         []corev1.Node
	// Pods are those on nodes, or nil if they are not known.
	Pods []corev1.Pod
	// Signs are the AppWrapper controller's settings about nodes.
	Signs nodesigns.Settings `json:"-"`
	// Unread says in sentences what could not be read.
	Unread []string
}

// View is what an overview is about. The empty one is about teams, cohorts and flavors.
type View string

// Own is what the teams of LocalQueues can start now. It is for people only.
const Own View = "own"

// The views of --by.
const (
	ByTeam   View = "team"
	ByQueue  View = "queue"
	ByNode   View = "node"
	ByFlavor View = "flavor"
)

// Views are those of --by.
func Views() []string {
	return []string{string(ByTeam), string(ByQueue), string(ByNode), string(ByFlavor)}
}

// Overview is the answer.
type Overview struct {
	// By is what the answer for programs lists first.
	By      View
	Teams   []Team
	Cohorts []Pool
	Flavors []Flavor
	// Queues are those of all namespaces, or of a member who may not see teams.
	Queues []Queue
	Nodes  []Node
	// Notes say what could not be read, and where more is promised than there is.
	Notes []string
}

// Answer is what programs get of an overview.
type Answer struct {
	Items[Team]
	// Cohorts and Flavors are there if all is shown.
	Cohorts []Pool   `json:"cohorts,omitempty"`
	Flavors []Flavor `json:"flavors,omitempty"`
}

// Items is what programs get of one view.
type Items[T any] struct {
	// By is what the items are: team, queue, node or flavor.
	By    View `json:"by"`
	Items []T  `json:"items"`
	// Notes say what could not be read, and where more is promised than there is.
	Notes []string `json:"notes,omitempty"`
}

// Answer is what programs get.
func (o Overview) Answer() any {
	switch o.By {
	case ByQueue:
		return Items[Queue]{o.By, append([]Queue{}, o.Queues...), o.Notes}
	case ByNode:
		return Items[Node]{o.By, append([]Node{}, o.Nodes...), o.Notes}
	case ByFlavor:
		return Items[Flavor]{o.By, append([]Flavor{}, o.Flavors...), o.Notes}
	}
	return Answer{Items[Team]{o.By, append([]Team{}, o.Teams...), o.Notes}, o.Cohorts, o.Flavors}
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

// Title is what people call the team: its namespaces, or a queue that no namespace uses.
func (t Team) Title() string { return cmp.Or(strings.Join(t.Namespaces, ","), t.Name) }

// Cell is the quota of one resource in one flavor.
type Cell struct {
	Flavor   string            `json:"flavor"`
	Resource string            `json:"resource"`
	Quota    resource.Quantity `json:"quota"`
	Used     resource.Quantity `json:"used"`
	// Borrowed is what is used beyond the quota.
	Borrowed resource.Quantity `json:"borrowed"`
	// Unused is what others may borrow.
	Unused resource.Quantity `json:"unused"`
	// Available is what a team can start now, with what it can borrow.
	Available *resource.Quantity `json:"available,omitempty"`
	// limit is that of lending, or nil.
	limit *resource.Quantity
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
	// Slack is the part of the quota that belongs to slack queues, which lend so much of it now.
	Slack resource.Quantity `json:"slack"`
	Lends resource.Quantity `json:"lends"`
	// Total is what the nodes have, and Usable what pods can get of it; absent if they are not known.
	Total  *resource.Quantity `json:"total,omitempty"`
	Usable *resource.Quantity `json:"usable,omitempty"`
	// Unusable is the rest.
	Unusable []Loss `json:"unusable,omitempty"`
	// Stranded are free devices of partly used nodes, or absent if that is not known.
	Stranded *resource.Quantity `json:"stranded,omitempty"`
	balance  quota.Balance
}

// Loss is what pods cannot get, and why.
type Loss struct {
	Cause  string            `json:"cause"`
	Amount resource.Quantity `json:"amount"`
}

// Queue is a LocalQueue.
type Queue struct {
	Name         string `json:"name"`
	Namespace    string `json:"namespace"`
	ClusterQueue string `json:"clusterQueue"`
	Pending      int32  `json:"pending"`
	Running      int32  `json:"running"`
	// Inactive is why nothing is admitted.
	Inactive string `json:"inactive,omitempty"`
	Used     []Cell `json:"used,omitempty"`
}

// Judge makes an overview of objects.
func Judge(o Objects, view View) Overview {
	answer := Overview{By: cmp.Or(view, ByTeam), Notes: o.Unread}
	switch {
	case view == ByNode:
		answer.Nodes = o.nodes()
	case view == ByQueue || o.ClusterQueues == nil:
		answer.By, answer.Queues = ByQueue, o.queues()
	case view == ByTeam:
		answer.Teams = o.teams()
	case view == Own:
		answer.Teams = slices.DeleteFunc(o.teams(), func(t Team) bool { return len(t.Namespaces) == 0 })
	case view == ByFlavor:
		answer.Flavors = o.flavors()
	default:
		answer.Teams, answer.Cohorts, answer.Flavors = o.teams(), o.pools(), o.flavors()
	}
	answer.Notes = append(answer.Notes, answer.troubles()...)
	return answer
}

// Empty tells whether there is nothing to show.
func (o Overview) Empty() bool {
	return len(o.Teams)+len(o.Flavors)+len(o.Queues)+len(o.Nodes) == 0
}

// troubles are teams whose work cannot start, and more quota than nodes.
func (o Overview) troubles() (all []string) {
	for _, t := range o.Teams {
		if t.Inactive != "" {
			all = append(all, fmt.Sprintf("team %s is not active: %s", t.Name, t.Inactive))
		}
	}
	for _, f := range o.Flavors {
		if f.Usable == nil || !f.balance.BeyondUsable() {
			continue
		}
		promised, outside := f.balance.Promised(), ""
		if f.balance.Outside.Sign() > 0 {
			outside = fmt.Sprintf(", of which pods outside the queues use %s", &f.balance.Outside)
		}
		all = append(all, fmt.Sprintf("the quota of %s in flavor %s that can be used is %s, but pods can get %s of its nodes%s", f.Resource, f.Name, &promised, f.Usable, outside))
	}
	return all
}

// HasOwn reports whether the LocalQueues belong to a ClusterQueue that is known.
func (o Objects) HasOwn() bool {
	return slices.ContainsFunc(o.ClusterQueues, func(q kueue.ClusterQueue) bool { return len(o.team(q).Namespaces) > 0 })
}

func (o Objects) teams() (all []Team) {
	for _, q := range o.ClusterQueues {
		all = append(all, o.team(q))
	}
	slices.SortFunc(all, func(a, b Team) int { return cmp.Or(cmp.Compare(a.Cohort, b.Cohort), cmp.Compare(a.Name, b.Name)) })
	return all
}

func (o Objects) team(q kueue.ClusterQueue) Team {
	t := Team{Name: q.Name, Cohort: string(q.Spec.CohortName), Pending: q.Status.PendingWorkloads, Running: q.Status.AdmittedWorkloads, Quota: cells(q)}
	t.Inactive = inactive(q.Status.Conditions)
	for _, l := range o.LocalQueues {
		if string(l.Spec.ClusterQueue) == q.Name && !slices.Contains(t.Namespaces, l.Namespace) {
			t.Namespaces = append(t.Namespaces, l.Namespace)
		}
	}
	slices.Sort(t.Namespaces)
	for i, c := range t.Quota {
		available := o.tree().Available(q, c.key())
		t.Quota[i].Available = &available
	}
	return t
}

// inactive is why a queue admits nothing.
func inactive(conditions []metav1.Condition) string {
	if c := quota.Inactive(conditions); c != nil {
		return cmp.Or(c.Message, c.Reason)
	}
	return ""
}

// cells are the quota and the use of a ClusterQueue.
func cells(q kueue.ClusterQueue) []Cell {
	all := quotas(q.Spec.ResourceGroups)
	for i, c := range all {
		if use, known := quota.Reserved(q, c.key()); known {
			all[i].Used, all[i].Borrowed = use.Total, use.Borrowed
			all[i].Unused.Sub(use.Total)
		}
	}
	for i := range all {
		all[i].Unused = lendable(all[i].Unused, all[i].limit)
	}
	return all
}

// lendable is what may be lent of what is unused.
func lendable(unused resource.Quantity, limit *resource.Quantity) resource.Quantity {
	switch {
	case unused.Sign() < 0:
		return resource.Quantity{}
	case limit != nil && limit.Cmp(unused) < 0:
		return *limit
	}
	return unused
}

func quotas(groups []kueue.ResourceGroup) (all []Cell) {
	for _, group := range groups {
		for _, flavor := range group.Flavors {
			for _, r := range flavor.Resources {
				all = append(all, Cell{Flavor: string(flavor.Name), Resource: string(r.Name), Quota: r.NominalQuota, Unused: r.NominalQuota.DeepCopy(), limit: r.LendingLimit})
			}
		}
	}
	return all
}

func (c Cell) key() quota.Cell {
	return quota.Cell{Flavor: kueue.ResourceFlavorReference(c.Flavor), Resource: corev1.ResourceName(c.Resource)}
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

func (o Objects) queues() (all []Queue) {
	for _, q := range o.LocalQueues {
		all = append(all, queueOf(q))
	}
	slices.SortFunc(all, func(a, b Queue) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return all
}

func queueOf(l kueue.LocalQueue) Queue {
	q := Queue{Name: l.Name, Namespace: l.Namespace, ClusterQueue: string(l.Spec.ClusterQueue), Pending: l.Status.PendingWorkloads, Running: l.Status.AdmittedWorkloads, Inactive: inactive(l.Status.Conditions)}
	for _, flavor := range l.Status.FlavorsReservation {
		for _, use := range flavor.Resources {
			q.Used = append(q.Used, Cell{Flavor: string(flavor.Name), Resource: string(use.Name), Used: use.Total})
		}
	}
	return q
}
