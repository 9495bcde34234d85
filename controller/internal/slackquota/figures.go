// SPDX-License-Identifier: Apache-2.0

package slackquota

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// Figures compare the quota of one resource in one flavor with the nodes.
type Figures struct {
	Supply
	// Quota is the nominal quota of all ClusterQueues. Slack is the part that belongs to slack
	// queues, which lend so much of it now.
	Quota, Slack, Lent resource.Quantity
}

// Report has the figures of every flavor and resource that has quota.
func Report(queues []kueue.ClusterQueue, slack []string, supplies Supplies) map[kueue.ResourceFlavorReference]map[corev1.ResourceName]Figures {
	all := map[kueue.ResourceFlavorReference]map[corev1.ResourceName]Figures{}
	for i := range queues {
		isSlack := slices.Contains(slack, queues[i].Name)
		for _, group := range queues[i].Spec.ResourceGroups {
			for _, flavor := range group.Flavors {
				if all[flavor.Name] == nil {
					all[flavor.Name] = map[corev1.ResourceName]Figures{}
				}
				for _, quota := range flavor.Resources {
					f := all[flavor.Name][quota.Name]
					f.Supply = supplies[flavor.Name][quota.Name]
					f.promise(quota, isSlack)
					all[flavor.Name][quota.Name] = f
				}
			}
		}
	}
	return all
}

func (f *Figures) promise(quota kueue.ResourceQuota, isSlack bool) {
	f.Quota.Add(quota.NominalQuota)
	if !isSlack {
		return
	}
	f.Slack.Add(quota.NominalQuota)
	if limit := quota.LendingLimit; limit != nil && limit.Cmp(quota.NominalQuota) < 0 {
		f.Lent.Add(*limit)
		return
	}
	f.Lent.Add(quota.NominalQuota)
}
