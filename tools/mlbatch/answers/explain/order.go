// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/resource"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/mlbatch/mlbatch/tools/mlbatch/quota"
)

// behind is about work that Kueue has not come to: other work is ahead of it.
func behind(o Objects) []Cause {
	if !o.pending() || o.inactive() || o.Position == nil {
		return nil
	}
	others, where := o.Position.ahead()
	if others == 0 {
		return nil
	}
	place := Evidence{o.workload(), "position in its " + where + ", counted from 0", fmt.Sprint(others)}
	ahead := func(c *Cause) { c.Who = o.who(nil) }
	if q := o.queue(); q != nil && q.Spec.QueueingStrategy == kueue.StrictFIFO {
		strict := Evidence{"ClusterQueue " + q.Name, "spec.queueingStrategy", string(kueue.StrictFIFO)}
		return []Cause{cause("BehindInStrictQueue", place, also(strict), ahead)}
	}
	if condition(o.Workload.Status.Conditions, kueue.WorkloadQuotaReserved) == nil {
		return []Cause{cause("NotTriedYet", place, ahead)}
	}
	return nil
}

// notLent is about unused quota of the cohort that lending limits keep from others.
func (o Objects) notLent(found Cause) []Cause {
	if found.Code != "QuotaCohort" || len(found.Numbers) == 0 {
		return nil
	}
	short, own := found.Numbers[0], o.queue()
	cell := quota.Cell{Flavor: kueue.ResourceFlavorReference(short.Flavor), Resource: resourceName(short.Resource)}
	var limits []Evidence
	for _, q := range o.ClusterQueues {
		if q.Name == own.Name || !o.share(q, *own) {
			continue
		}
		if limit := keeps(q, cell); limit != nil {
			limits = append(limits, Evidence{"ClusterQueue " + q.Name, fmt.Sprintf("lendingLimit of %s in flavor %s", cell.Resource, cell.Flavor), limit.String()})
		}
	}
	if len(limits) == 0 {
		return nil
	}
	return []Cause{cause("QuotaNotLent", limits[0], also(limits[1:]...))}
}

// keeps is the lending limit of a queue that has not used all that it does not lend, or nil.
func keeps(q kueue.ClusterQueue, cell quota.Cell) *resource.Quantity {
	own, known := quota.Own(q.Spec.ResourceGroups, cell)
	use, reported := quota.Reserved(q, cell)
	if !known || !reported || own.LendingLimit == nil {
		return nil
	}
	kept := own.NominalQuota.DeepCopy()
	if kept.Sub(*own.LendingLimit); kept.Cmp(use.Total) <= 0 {
		return nil
	}
	return own.LendingLimit
}
