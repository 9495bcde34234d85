// SPDX-License-Identifier: Apache-2.0

// Package slackquota answers how much a slack queue may lend. A slack queue is a ClusterQueue whose
// quota belongs to no team and is lent to all teams of its cohort. Whatever nodes cannot give is
// taken from that loan, so that the teams keep their own quota. It decides from the objects of the
// cluster alone, so a restart of the controller changes nothing.
package slackquota

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
)

// FieldOwner is who lowers limits, in the managed fields of a ClusterQueue.
const FieldOwner = "mlbatch-slack-quota"

// Lowered is a limit that was lowered.
type Lowered struct {
	To resource.Quantity `json:"to"`
	// From is the administrator's; nil if there is none.
	From *resource.Quantity `json:"from,omitempty"`
}

// note has what was lowered, by flavor and resource. The annotation keeps it, so that the limits of
// the administrator return when nothing is missing any more.
type note = byResource[Lowered]

// Change is a lending limit that has to be written; nil is none.
type Change struct {
	Group, Flavor, Resource int // indices
	FlavorName              kueue.ResourceFlavorReference
	ResourceName            corev1.ResourceName
	Before, After           *resource.Quantity
}

// Decision is what has to be written.
type Decision struct {
	Changes []Change
	// Note is the annotation; empty if it has to be removed.
	Note string
	note bool // the annotation changes
}

// Nothing tells whether there is nothing to write.
func (d Decision) Nothing() bool { return len(d.Changes) == 0 && !d.note }

// Decide says what to write to a slack queue while so much of its flavors is unusable: each limit
// is what remains of the nominal quota, or the administrator's own limit if that is lower.
func Decide(q *kueue.ClusterQueue, missing Missing) Decision {
	var d Decision
	before, after := noteOf(q), note{}
	for i, group := range q.Spec.ResourceGroups {
		for j, flavor := range group.Flavors {
			for k, quota := range flavor.Resources {
				own := ownLimit(quota, before[flavor.Name][quota.Name])
				if i == 0 && j == 0 && ofUpstream(q) {
					own = nil
				}
				limit := limitOf(q, quota.NominalQuota, own, missing[flavor.Name][quota.Name])
				if !same(limit, own) {
					after.add(flavor.Name, quota.Name, &Lowered{To: *limit, From: own})
				}
				if !same(limit, quota.LendingLimit) {
					d.Changes = append(d.Changes, Change{i, j, k, flavor.Name, quota.Name, quota.LendingLimit, limit})
				}
			}
		}
	}
	d.Note = after.String()
	d.note = d.Note != q.Annotations[v1beta2.LoweredLendingLimitsAnnotation]
	return d
}

// ownLimit is the administrator's: what is there, unless it is what we have written. So whoever
// applies the queue again, with a limit or without, sets the own limit.
func ownLimit(quota kueue.ResourceQuota, lowered *Lowered) *resource.Quantity {
	if lowered != nil && same(quota.LendingLimit, &lowered.To) {
		return lowered.From
	}
	return quota.LendingLimit
}

// limitOf is nil if there is no limit. A queue without a cohort lends nothing, and Kueue allows it
// no limits.
func limitOf(q *kueue.ClusterQueue, nominal resource.Quantity, own *resource.Quantity, missing resource.Quantity) *resource.Quantity {
	if q.Spec.CohortName == "" || own == nil && missing.Sign() <= 0 {
		return own
	}
	limit := nominal.DeepCopy()
	if limit.Sub(missing); limit.Sign() < 0 {
		limit = *resource.NewQuantity(0, nominal.Format)
	}
	if own != nil && own.Cmp(limit) <= 0 {
		return own
	}
	return &limit
}

func same(a, b *resource.Quantity) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Cmp(*b) == 0
}

// noteOf reads what was lowered. Nothing was if the annotation cannot be read: what is there is
// then the administrator's.
func noteOf(q *kueue.ClusterQueue) note {
	return read[Lowered](q.Annotations[v1beta2.LoweredLendingLimitsAnnotation])
}
