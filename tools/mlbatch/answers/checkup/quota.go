// SPDX-License-Identifier: Apache-2.0

package checkup

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/mlbatch/mlbatch/controller/nodesigns"
	"github.com/mlbatch/mlbatch/tools/mlbatch/quota"
)

// cluster is what quota is compared in.
func (o Objects) cluster() quota.Cluster {
	return quota.Cluster{Tree: quota.Tree{Queues: o.ClusterQueues, Cohorts: o.Cohorts}, Flavors: o.Flavors, Nodes: o.Nodes, Pods: o.Pods, Signs: o.Signs}
}

// balances are those of cells with quota, by name.
func (o Objects) balances() []quota.Balance {
	all := slices.DeleteFunc(o.cluster().Balances(), func(b quota.Balance) bool { return b.Quota.Sign() <= 0 })
	slices.SortFunc(all, func(a, b quota.Balance) int { return a.Compare(b.Cell) })
	return all
}

// flavored are the nodes of any flavor that has quota.
func (o Objects) flavored() (found []corev1.Node) {
	used := map[string]bool{}
	for _, b := range o.balances() {
		used[string(b.Flavor)] = true
	}
	for i := range o.Nodes {
		for j := range o.Flavors {
			if used[o.Flavors[j].Name] && nodesigns.Serves(&o.Nodes[i], &o.Flavors[j]) {
				found = append(found, o.Nodes[i])
				break
			}
		}
	}
	return found
}

func (o Objects) flavorWithoutNodes() (found []sight) {
	lacking := map[string][]string{}
	for _, b := range o.balances() {
		if b.WithoutNodes() {
			lacking[string(b.Flavor)] = append(lacking[string(b.Flavor)], b.Quota.String()+" "+string(b.Resource))
		}
	}
	for _, f := range o.Flavors {
		if quota := lacking[f.Name]; len(quota) > 0 {
			labels := make([]string, 0, len(f.Spec.NodeLabels))
			for _, key := range slices.Sorted(maps.Keys(f.Spec.NodeLabels)) {
				labels = append(labels, key+"="+f.Spec.NodeLabels[key])
			}
			found = append(found, of("ResourceFlavor "+f.Name, "quota", some(quota), "labels", some(labels), "nodes", fmt.Sprintf("0 of %d", len(o.Nodes))))
		}
	}
	return found
}

func (o Objects) flavorsOverlap() (found []sight) {
	quotaOf := map[string][]string{}
	for _, b := range o.balances() {
		quotaOf[string(b.Flavor)] = append(quotaOf[string(b.Flavor)], string(b.Resource))
	}
	for i, a := range o.Flavors {
		for _, b := range o.Flavors[i+1:] {
			both := slices.DeleteFunc(slices.Clone(quotaOf[a.Name]), func(r string) bool { return !slices.Contains(quotaOf[b.Name], r) })
			var nodes []string
			for _, n := range o.cluster().NodesOf(&a) {
				if len(both) > 0 && nodesigns.Serves(n, &b) {
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

func (o Objects) quotaBeyondNodes() (found []sight) {
	for _, b := range o.balances() {
		if b.BeyondNodes() {
			found = append(found, of(b.String(), "quota", b.Quota.String(), "nodes have", b.Shown.String(), "nodes", fmt.Sprint(b.Nodes)))
		}
	}
	return found
}

// quotaBeyondUsable is silent about what flavorWithoutNodes and quotaBeyondNodes report.
func (o Objects) quotaBeyondUsable() (found []sight) {
	for _, b := range o.balances() {
		if b.Nodes == 0 || b.BeyondNodes() || !b.BeyondUsable() {
			continue
		}
		promised, usable := b.Promised(), b.ForQueues()
		evidence := []string{"quota", promised.String(), "usable", usable.String(), "nodes have", b.Total.String()}
		if b.Outside.Sign() > 0 {
			evidence = append(evidence, "used outside the queues", b.Outside.String())
		}
		for _, lost := range b.Losses {
			evidence = append(evidence, lost.Cause, lost.Amount.String()+" on "+some(lost.Nodes))
		}
		found = append(found, of(b.String(), evidence...))
	}
	return found
}
