// SPDX-License-Identifier: Apache-2.0

package quota

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// TeamLabel marks the namespaces of teams.
const TeamLabel = "mlbatch-team-namespace"

// Owner is what Kueue gives quota to: the controller of a Workload, or its only owner. A Workload of a group of pods
// has none.
func Owner(w *kueue.Workload) (metav1.OwnerReference, bool) {
	for _, o := range w.OwnerReferences {
		if o.Controller != nil && *o.Controller || len(w.OwnerReferences) == 1 {
			return o, true
		}
	}
	return metav1.OwnerReference{}, false
}

// Holds reports whether a Workload has quota.
func Holds(w *kueue.Workload) bool {
	return w.Status.Admission != nil && meta.IsStatusConditionTrue(w.Status.Conditions, kueue.WorkloadQuotaReserved) && !Finished(w)
}

// Finished reports whether the work of a Workload has ended.
func Finished(w *kueue.Workload) bool {
	return meta.IsStatusConditionTrue(w.Status.Conditions, kueue.WorkloadFinished)
}

// Stopped reports whether a queue has a policy that admits nothing.
func Stopped(policy *kueue.StopPolicy) bool {
	return policy != nil && *policy != "" && *policy != kueue.None
}

// Inactive is the condition that says why a ClusterQueue or a LocalQueue admits nothing, or nil.
func Inactive(conditions []metav1.Condition) *metav1.Condition {
	if c := meta.FindStatusCondition(conditions, kueue.ClusterQueueActive); c != nil && c.Status != metav1.ConditionTrue {
		return c
	}
	return nil
}
