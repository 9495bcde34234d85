// SPDX-License-Identifier: Apache-2.0

package top

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/resource"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/mlbatch/mlbatch/controller/nodesigns"
	"github.com/mlbatch/mlbatch/tools/mlbatch/quota"
)

func (o Objects) cluster() quota.Cluster {
	return quota.Cluster{Tree: o.tree(), Flavors: o.Flavors, Nodes: o.Nodes, Pods: o.Pods, Signs: o.Signs}
}

func (o Objects) tree() quota.Tree { return quota.Tree{Queues: o.ClusterQueues, Cohorts: o.Cohorts} }

// flavors compare all quota with the nodes.
func (o Objects) flavors() (all []Flavor) {
	used, stranded := map[quota.Cell]resource.Quantity{}, o.stranded()
	for _, q := range o.ClusterQueues {
		for _, c := range cells(q) {
			sum := used[c.key()]
			sum.Add(c.Used)
			used[c.key()] = sum
		}
	}
	for _, b := range o.cluster().Balances() {
		f := Flavor{Name: string(b.Flavor), Resource: string(b.Resource), Quota: b.Quota, Used: used[b.Cell], Slack: b.Slack, Lends: b.Lends, balance: b}
		if known := slices.ContainsFunc(o.Flavors, func(f kueue.ResourceFlavor) bool { return f.Name == string(b.Flavor) }); known && len(o.Nodes) > 0 {
			f.Total, f.Usable = &b.Total, &b.Usable
			for _, lost := range b.Losses {
				f.Unusable = append(f.Unusable, Loss{Cause: lost.Cause, Amount: lost.Amount})
			}
		}
		if free, known := stranded[b.Cell]; known {
			f.Stranded = &free
		}
		all = append(all, f)
	}
	return all
}

// stranded are free devices of nodes of which others are used. It is nil if pods are not known.
func (o Objects) stranded() map[quota.Cell]resource.Quantity {
	if o.Pods == nil {
		return nil
	}
	used, free := quota.Used(o.Pods), map[quota.Cell]resource.Quantity{}
	for i := range o.Flavors {
		for _, n := range o.cluster().NodesOf(&o.Flavors[i]) {
			for name, stock := range o.Signs.Stocks(n) {
				if nodesigns.IsDevice(name) {
					at := quota.Cell{Flavor: kueue.ResourceFlavorReference(o.Flavors[i].Name), Resource: name}
					sum := free[at]
					sum.Add(quota.Stranded(name, stock.Usable, used[n.Name][name]))
					free[at] = sum
				}
			}
		}
	}
	return free
}
