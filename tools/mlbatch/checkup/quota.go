// SPDX-License-Identifier: Apache-2.0

package checkup

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/nodesigns"
)

// cell is the unit of quota.
type cell struct {
	flavor   string
	resource corev1.ResourceName
}

func (c cell) String() string { return fmt.Sprintf("ResourceFlavor %s, %s", c.flavor, c.resource) }

// promised is all nominal quota that is not zero.
func (o Objects) promised() map[cell]resource.Quantity {
	return o.quota(func(_ kueue.ClusterQueue, r kueue.ResourceQuota) resource.Quantity { return r.NominalQuota })
}

// promisedNow has of slack queues what they lend, because nobody can use the rest.
func (o Objects) promisedNow() map[cell]resource.Quantity {
	return o.quota(func(q kueue.ClusterQueue, r kueue.ResourceQuota) resource.Quantity {
		_, lends := q.Annotations[v1beta2.LoweredLendingLimitsAnnotation]
		if lends && r.LendingLimit != nil && r.LendingLimit.Cmp(r.NominalQuota) < 0 {
			return *r.LendingLimit
		}
		return r.NominalQuota
	})
}

// quota adds up the cells with nominal quota.
func (o Objects) quota(of func(kueue.ClusterQueue, kueue.ResourceQuota) resource.Quantity) map[cell]resource.Quantity {
	all := map[cell]resource.Quantity{}
	add := func(q kueue.ClusterQueue) {
		for _, group := range q.Spec.ResourceGroups {
			for _, flavor := range group.Flavors {
				for _, r := range flavor.Resources {
					if r.NominalQuota.Sign() > 0 {
						c := cell{string(flavor.Name), r.Name}
						sum := all[c]
						sum.Add(of(q, r))
						all[c] = sum
					}
				}
			}
		}
	}
	for _, q := range o.ClusterQueues {
		add(q)
	}
	for _, c := range o.Cohorts {
		add(kueue.ClusterQueue{Spec: kueue.ClusterQueueSpec{ResourceGroups: c.Spec.ResourceGroups}})
	}
	return all
}

func sorted(cells map[cell]resource.Quantity) []cell {
	return slices.SortedFunc(maps.Keys(cells), func(a, b cell) int {
		return cmp.Or(cmp.Compare(a.flavor, b.flavor), cmp.Compare(a.resource, b.resource))
	})
}

// nodesOf are the nodes of a flavor: its labels fit, and queued work may run there.
func (o Objects) nodesOf(f kueue.ResourceFlavor) (found []corev1.Node) {
	for _, n := range o.Nodes {
		if nodesigns.Serves(&n, &f) {
			found = append(found, n)
		}
	}
	return found
}

func (o Objects) flavor(name string) (kueue.ResourceFlavor, bool) {
	i := slices.IndexFunc(o.Flavors, func(f kueue.ResourceFlavor) bool { return f.Name == name })
	if i < 0 {
		return kueue.ResourceFlavor{}, false
	}
	return o.Flavors[i], true
}

// flavored are the nodes of any flavor that has quota.
func (o Objects) flavored() (found []corev1.Node) {
	used := map[string]bool{}
	for c := range o.promised() {
		used[c.flavor] = true
	}
	for _, n := range o.Nodes {
		if slices.ContainsFunc(o.Flavors, func(f kueue.ResourceFlavor) bool { return used[f.Name] && nodesigns.Serves(&n, &f) }) {
			found = append(found, n)
		}
	}
	return found
}

func (o Objects) flavorWithoutNodes() (found []sight) {
	quota := map[string][]string{}
	promised := o.promised()
	for _, c := range sorted(promised) {
		amount := promised[c]
		quota[c.flavor] = append(quota[c.flavor], amount.String()+" "+string(c.resource))
	}
	for _, f := range o.Flavors {
		if len(quota[f.Name]) > 0 && len(o.nodesOf(f)) == 0 {
			labels := make([]string, 0, len(f.Spec.NodeLabels))
			for _, key := range slices.Sorted(maps.Keys(f.Spec.NodeLabels)) {
				labels = append(labels, key+"="+f.Spec.NodeLabels[key])
			}
			found = append(found, of("ResourceFlavor "+f.Name, "quota", some(quota[f.Name]), "labels", some(labels), "nodes", fmt.Sprintf("0 of %d", len(o.Nodes))))
		}
	}
	return found
}

func (o Objects) flavorsOverlap() (found []sight) {
	promised := o.promised()
	for i, a := range o.Flavors {
		for _, b := range o.Flavors[i+1:] {
			var both, nodes []string
			for _, c := range sorted(promised) {
				if _, also := promised[cell{b.Name, c.resource}]; also && c.flavor == a.Name {
					both = append(both, string(c.resource))
				}
			}
			for _, n := range o.nodesOf(a) {
				if len(both) > 0 && nodesigns.Serves(&n, &b) {
					nodes = append(nodes, n.Name)
				}
			}
			if len(nodes) > 0 {
				found = append(found, of("ResourceFlavors "+a.Name+" and "+b.Name, "nodes of both", fmt.Sprint(len(nodes)), "such as", some(nodes), "quota in both", some(both)))
			}
		}
	}
	return found
}

// supply is what the nodes of a flavor have of a resource.
type supply struct {
	nodes         int
	total, usable resource.Quantity
	outside       resource.Quantity
	// unusable is the rest, by cause, and where that is.
	unusable map[string]resource.Quantity
	where    map[string][]string
}

// supply counts as the controller does for slack queues. What pods outside the queues use of the rest is not usable.
func (o Objects) supply(c cell, signs nodesigns.Settings, outside map[string]corev1.ResourceList) (s supply, known bool) {
	f, known := o.flavor(c.flavor)
	s.unusable, s.where = map[string]resource.Quantity{}, map[string][]string{}
	if !known {
		return s, false
	}
	for _, n := range o.nodesOf(f) {
		stock := signs.Stocks(&n)[c.resource]
		s.nodes++
		s.total.Add(stock.Total)
		s.usable.Add(stock.Usable)
		if stock.Usable.Sign() > 0 {
			s.outside.Add(outside[n.Name][c.resource])
			s.usable.Sub(outside[n.Name][c.resource])
		}
		if cause := string(stock.Cause); cause != "" {
			lost := s.unusable[cause]
			lost.Add(stock.Total)
			lost.Sub(stock.Usable)
			s.unusable[cause] = lost
			s.where[cause] = append(s.where[cause], n.Name)
		}
	}
	return s, true
}

// quotaBeyondNodes needs no signs: what nodes have in total does not depend on them.
func (o Objects) quotaBeyondNodes() (found []sight) {
	promised := o.promised()
	for _, c := range sorted(promised) {
		quota := promised[c]
		if s, known := o.supply(c, nodesigns.Settings{}, nil); known && s.nodes > 0 && quota.Cmp(s.total) > 0 {
			found = append(found, of(c.String(), "quota", quota.String(), "nodes have", s.total.String(), "nodes", fmt.Sprint(s.nodes)))
		}
	}
	return found
}

// quotaBeyondUsable is silent about quota beyond all nodes, of which quotaBeyondNodes speaks.
func (o Objects) quotaBeyondUsable() (found []sight) {
	promised, now, used := o.promised(), o.promisedNow(), o.used(true)
	for _, c := range sorted(promised) {
		all, quota := promised[c], now[c]
		s, known := o.supply(c, o.Signs, used)
		if !known || s.nodes == 0 || all.Cmp(s.total) > 0 || quota.Cmp(s.usable) <= 0 {
			continue
		}
		evidence := []string{"quota", quota.String(), "usable", s.usable.String(), "nodes have", s.total.String()}
		if s.outside.Sign() > 0 {
			evidence = append(evidence, "used outside the queues", s.outside.String())
		}
		for _, cause := range slices.Sorted(maps.Keys(s.unusable)) {
			lost := s.unusable[cause]
			evidence = append(evidence, cause, lost.String()+" on "+some(s.where[cause]))
		}
		found = append(found, of(c.String(), evidence...))
	}
	return found
}
