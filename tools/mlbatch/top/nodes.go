// SPDX-License-Identifier: Apache-2.0

package top

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	helper "k8s.io/component-helpers/resource"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/nodesigns"
	"github.com/mlbatch/mlbatch/tools/mlbatch/audit"
	"github.com/mlbatch/mlbatch/tools/mlbatch/queuefit"
)

// flavors compare all quota with the nodes.
func (o Objects) flavors() (all []Flavor) {
	var promised, slack []Cell
	for _, q := range o.ClusterQueues {
		promised = append(promised, cells(q)...)
		if o.isSlack(q) {
			slack = append(slack, loans(q)...)
		}
	}
	for _, c := range o.Cohorts {
		promised = append(promised, quotas(c.Spec.ResourceGroups)...)
	}
	supplies, stranded, reserve := o.Signs.Supplies(o.Flavors, o.Nodes), o.stranded(), sum(slack)
	for _, c := range sum(promised) {
		f := Flavor{Name: c.Flavor, Resource: c.Resource, Quota: c.Quota, Used: c.Used}
		if i := slices.IndexFunc(reserve, func(s Cell) bool { return s.key() == c.key() }); i >= 0 {
			f.Slack, f.Lends = reserve[i].Quota, reserve[i].Unused
		}
		if known := slices.ContainsFunc(o.Flavors, func(f kueue.ResourceFlavor) bool { return f.Name == c.Flavor }); known && len(o.Nodes) > 0 {
			f.supplied(supplies[c.key().Flavor][c.key().Resource])
		}
		if free, known := stranded[c.key()]; known {
			f.Stranded = &free
		}
		all = append(all, f)
	}
	return all
}

// isSlack tells whether the controller keeps the lending limits of a queue.
func (o Objects) isSlack(q kueue.ClusterQueue) bool {
	_, lowered := q.Annotations[v1beta2.LoweredLendingLimitsAnnotation]
	return lowered || slices.Contains(o.Signs.SlackQueues(), q.Name)
}

// loans have what a queue lends as what is unused.
func loans(q kueue.ClusterQueue) (all []Cell) {
	all = quotas(q.Spec.ResourceGroups)
	for i, c := range all {
		all[i].Unused = lendable(c.Quota, c.limit)
	}
	return all
}

func (f *Flavor) supplied(s nodesigns.Supply) {
	f.Total, f.Usable = &s.Total, &s.Usable
	for _, cause := range nodesigns.Causes() {
		if lost, known := s.Unusable[cause]; known {
			f.Unusable = append(f.Unusable, Loss{Cause: string(cause), Amount: lost})
		}
	}
}

// promised is what queues can use or lend: of a slack queue, nobody can use what it does not lend.
func (f Flavor) promised() resource.Quantity {
	now := f.Quota.DeepCopy()
	now.Sub(f.Slack)
	now.Add(f.Lends)
	return now
}

// stranded are free devices of nodes of which others are used. It is nil if pods are not known.
func (o Objects) stranded() map[queuefit.Cell]resource.Quantity {
	if o.Pods == nil {
		return nil
	}
	taken, free := o.taken(), map[queuefit.Cell]resource.Quantity{}
	for i := range o.Nodes {
		for name, stock := range o.Signs.Stocks(&o.Nodes[i]) {
			if !strings.Contains(string(name), "/") {
				continue
			}
			left, used := stock.Usable.DeepCopy(), taken[o.Nodes[i].Name][name]
			if left.Sub(used); used.Sign() == 0 || left.Sign() < 0 {
				left = resource.Quantity{}
			}
			for j := range o.Flavors {
				if nodesigns.Serves(&o.Nodes[i], &o.Flavors[j]) {
					at := key(kueue.ResourceFlavorReference(o.Flavors[j].Name), name)
					sum := free[at]
					sum.Add(left)
					free[at] = sum
				}
			}
		}
	}
	return free
}

// taken is what pods request of each node.
func (o Objects) taken() map[string]corev1.ResourceList {
	all := map[string]corev1.ResourceList{}
	for i := range o.Pods {
		if !audit.UsesNode(o.Pods[i]) {
			continue
		}
		node := o.Pods[i].Spec.NodeName
		if all[node] == nil {
			all[node] = corev1.ResourceList{}
		}
		for name, amount := range helper.PodRequests(&o.Pods[i], helper.PodResourcesOptions{}) {
			sum := all[node][name]
			sum.Add(amount)
			all[node][name] = sum
		}
	}
	return all
}
