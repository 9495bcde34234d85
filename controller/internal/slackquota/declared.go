// SPDX-License-Identifier: Apache-2.0

package slackquota

import (
	"k8s.io/apimachinery/pkg/api/resource"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
)

// DeclaredName is the ConfigMap with the slack queues of the teams file, by name. The chart teams writes it.
const DeclaredName = "mlbatch-slack-queues"

// Declaration is what the teams file says of one slack queue.
type Declaration struct {
	CohortName     kueue.CohortReference `json:"cohortName"`
	ResourceGroups []kueue.ResourceGroup `json:"resourceGroups"`
}

// Declarations are all of them, by the name of the queue. One that cannot be read is nil.
type Declarations map[string]*Declaration

// made tells whether the controller has made the queue, as the teams file says. It keeps only the lending
// limits of others.
func made(q *kueue.ClusterQueue) bool {
	_, made := q.Annotations[v1beta2.DeclaredLendingLimitsAnnotation]
	return made
}

// limits are lending limits; nil is none.
type limits = byResource[resource.Quantity]

// on returns the queue as the file wants it, before limits are lowered. Of the limits, only those follow the
// file that the file has changed since. The others are the administrator's, or lowered.
func (d *Declaration) on(q *kueue.ClusterQueue) *kueue.ClusterQueue {
	wanted := q.DeepCopy()
	wanted.Spec.CohortName, wanted.Spec.ResourceGroups = d.CohortName, nil
	before, live, lowered := read[resource.Quantity](q.Annotations[v1beta2.DeclaredLendingLimitsAnnotation]), limitsOf(q.Spec.ResourceGroups), noteOf(q)
	for _, group := range d.ResourceGroups {
		group = *group.DeepCopy()
		for _, flavor := range group.Flavors {
			for k := range flavor.Resources {
				quota := &flavor.Resources[k]
				if !same(quota.LendingLimit, before[flavor.Name][quota.Name]) {
					delete(lowered[flavor.Name], quota.Name)
				} else if limit, there := live[flavor.Name][quota.Name]; there {
					quota.LendingLimit = limit
				}
			}
		}
		wanted.Spec.ResourceGroups = append(wanted.Spec.ResourceGroups, group)
	}
	wanted.Annotations = annotated(q.Annotations, v1beta2.DeclaredLendingLimitsAnnotation, limitsOf(d.ResourceGroups).String())
	wanted.Annotations = annotated(wanted.Annotations, v1beta2.LoweredLendingLimitsAnnotation, lowered.String())
	return wanted
}

// limitsOf has every flavor and resource, also those without a limit.
func limitsOf(groups []kueue.ResourceGroup) limits {
	all := limits{}
	for _, group := range groups {
		for _, flavor := range group.Flavors {
			for _, quota := range flavor.Resources {
				all.add(flavor.Name, quota.Name, quota.LendingLimit)
			}
		}
	}
	return all
}
