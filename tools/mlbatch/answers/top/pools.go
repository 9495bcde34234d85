// SPDX-License-Identifier: Apache-2.0

package top

import (
	"maps"
	"slices"

	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// pools are the trees of cohorts.
func (o Objects) pools() (all []Pool) {
	trees := map[string][]Cell{}
	for _, q := range o.ClusterQueues {
		if q.Spec.CohortName != "" {
			root := string(o.tree().Root(q.Spec.CohortName))
			trees[root] = append(trees[root], cells(q)...)
		}
	}
	for _, c := range o.Cohorts {
		root := string(o.tree().Root(kueue.CohortReference(c.Name)))
		trees[root] = append(trees[root], quotas(c.Spec.ResourceGroups)...)
	}
	for _, name := range slices.Sorted(maps.Keys(trees)) {
		pool := Pool{Cohort: name, Cells: sum(trees[name])}
		for i, c := range pool.Cells { // what some have borrowed is not unused
			c.Unused.Sub(c.Borrowed)
			pool.Cells[i].Unused = lendable(c.Unused, nil)
		}
		all = append(all, pool)
	}
	return all
}
