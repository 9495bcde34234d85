// SPDX-License-Identifier: Apache-2.0

package quota

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/nodesigns"
)

// Cluster is what is promised, and what there is.
type Cluster struct {
	Tree
	Flavors []kueue.ResourceFlavor
	Nodes   []corev1.Node
	// Pods are those on nodes, or nil if they are not known.
	Pods []corev1.Pod
	// Signs are the AppWrapper controller's settings about nodes.
	Signs nodesigns.Settings
}

// Balance compares what is promised of a cell with what the nodes of its flavor have.
type Balance struct {
	Cell
	// Quota is all nominal quota, of queues and of cohorts.
	Quota resource.Quantity
	// Slack is the part of the quota that belongs to slack queues, which lend so much of it now.
	Slack, Lends resource.Quantity
	// Nodes are those of the flavor, and Shown is what they show now, whatever their health.
	Nodes int
	Shown resource.Quantity
	// Total is what the nodes had while they were healthy, and Usable what pods can get of it.
	Total, Usable resource.Quantity
	// Outside is what pods outside the queues use of what is usable.
	Outside resource.Quantity
	// Losses are why not all is usable.
	Losses []Loss
}

// Loss is what nodes have and pods cannot use, for one cause.
type Loss struct {
	Cause  string
	Amount resource.Quantity
	Nodes  []string
}

// Promised is what queues can use or lend: of a slack queue, nobody can use what it does not lend.
func (b Balance) Promised() resource.Quantity {
	now := b.Quota.DeepCopy()
	now.Sub(b.Slack)
	now.Add(b.Lends)
	return now
}

// ForQueues is what queued work can get of the nodes.
func (b Balance) ForQueues() resource.Quantity { return Free(b.Usable, b.Outside) }

// WithoutNodes reports whether there is quota, and no node of the flavor.
func (b Balance) WithoutNodes() bool { return b.Quota.Sign() > 0 && b.Nodes == 0 }

// BeyondNodes reports whether the quota is more than what all nodes have. It does not depend on their health.
func (b Balance) BeyondNodes() bool { return b.Nodes > 0 && b.Quota.Cmp(b.Shown) > 0 }

// BeyondUsable reports whether more is promised than queued work can get now.
func (b Balance) BeyondUsable() bool {
	promised := b.Promised()
	return promised.Cmp(b.ForQueues()) > 0
}

// Balances are those of all cells with quota, in the order of the queues. Those of a flavor that does not exist have
// no nodes.
func (c Cluster) Balances() (all []Balance) {
	outside := UsedOutside(c.Pods)
	for _, b := range c.promises() {
		if i := slices.IndexFunc(c.Flavors, func(f kueue.ResourceFlavor) bool { return f.Name == string(b.Flavor) }); i >= 0 {
			for _, n := range c.NodesOf(&c.Flavors[i]) {
				b.supply(n, c.Signs, outside[n.Name][b.Resource])
			}
		}
		slices.SortFunc(b.Losses, func(x, y Loss) int { return cmp.Compare(x.rank(), y.rank()) })
		all = append(all, b)
	}
	return all
}

// rank puts causes first that explain others.
func (l Loss) rank() int {
	return slices.IndexFunc(nodesigns.Causes(), func(c nodesigns.Cause) bool { return string(c) == l.Cause })
}

// promises are all quota.
func (c Cluster) promises() (all []Balance) {
	add := func(groups []kueue.ResourceGroup, slack bool) {
		eachQuota(groups, func(cell Cell, own kueue.ResourceQuota) {
			i := slices.IndexFunc(all, func(b Balance) bool { return b.Cell == cell })
			if i < 0 {
				i = len(all)
				all = append(all, Balance{Cell: cell})
			}
			all[i].Quota.Add(own.NominalQuota)
			if slack {
				all[i].Slack.Add(own.NominalQuota)
				all[i].Lends.Add(lent(own.NominalQuota, own.LendingLimit))
			}
		})
	}
	for _, q := range c.Queues {
		add(q.Spec.ResourceGroups, c.IsSlack(q))
	}
	for _, cohort := range c.Cohorts {
		add(cohort.Spec.ResourceGroups, false)
	}
	return all
}

// slackQueue is the usual name of one, which the teams chart reserves.
const slackQueue = "slack-cluster-queue"

// IsSlack reports whether a queue lends its quota to all: the controller keeps its lending limits. It has no
// LocalQueue on purpose.
func (c Cluster) IsSlack(q kueue.ClusterQueue) bool {
	_, lowered := q.Annotations[v1beta2.LoweredLendingLimitsAnnotation]
	return lowered || q.Name == slackQueue || slices.Contains(c.Signs.SlackQueues(), q.Name)
}

// NodesOf are the nodes of a flavor: its labels fit, and queued work may run there.
func (c Cluster) NodesOf(f *kueue.ResourceFlavor) (found []*corev1.Node) {
	for i := range c.Nodes {
		if nodesigns.Serves(&c.Nodes[i], f) {
			found = append(found, &c.Nodes[i])
		}
	}
	return found
}

// supply adds a node. It counts as the controller does for slack queues.
func (b *Balance) supply(n *corev1.Node, signs nodesigns.Settings, outside resource.Quantity) {
	b.Nodes++
	b.Shown.Add(nodesigns.Settings{}.Stocks(n)[b.Resource].Total)
	stock := signs.Stocks(n)[b.Resource]
	b.Total.Add(stock.Total)
	b.Usable.Add(stock.Usable)
	if stock.Usable.Sign() > 0 {
		b.Outside.Add(outside)
	}
	lost := stock.Total.DeepCopy()
	if lost.Sub(stock.Usable); stock.Cause == "" || lost.Sign() <= 0 {
		return
	}
	i := slices.IndexFunc(b.Losses, func(l Loss) bool { return l.Cause == string(stock.Cause) })
	if i < 0 {
		i = len(b.Losses)
		b.Losses = append(b.Losses, Loss{Cause: string(stock.Cause)})
	}
	b.Losses[i].Amount.Add(lost)
	b.Losses[i].Nodes = append(b.Losses[i].Nodes, n.Name)
}
