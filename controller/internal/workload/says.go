// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/internal/reassignment"
	"github.com/mlbatch/mlbatch/controller/quotareason"
)

// Says is what Kueue says of the quota of an AppWrapper.
func (e *Evictions) Says(ctx context.Context, aw types.UID) (quotareason.Word, error) {
	all, err := e.workloads(ctx, aw)
	_, known := e.known()
	for i := range all {
		if w := says(&all[i]); w.Evicted+w.Deactivated != "" {
			return w, nil
		}
	}
	return quotareason.Word{Known: known}, err
}

func says(w *kueue.Workload) quotareason.Word {
	said := quotareason.Word{Known: true}
	if meta.IsStatusConditionTrue(w.Status.Conditions, kueue.WorkloadFinished) {
		return said
	}
	if c := meta.FindStatusCondition(w.Status.Conditions, kueue.WorkloadEvicted); c != nil && c.Status == metav1.ConditionTrue {
		said.Evicted = c.Reason
	}
	inactive := w.Spec.Active != nil && !*w.Spec.Active
	switch {
	case reassigns(w, inactive):
		said.Evicted = quotareason.NodesReassigned
	case inactive && strings.HasPrefix(said.Evicted, kueue.WorkloadDeactivated):
		said.Deactivated = said.Evicted
	case inactive:
		said.Deactivated = kueue.WorkloadDeactivated
	}
	return said
}

// reassigns: our controller has deactivated the Workload to get other nodes, and activates it again or has done so.
func reassigns(w *kueue.Workload, inactive bool) bool {
	if inactive {
		return reassignment.Requested(w)
	}
	_, asked := w.Annotations[v1beta2.ReassignedAnnotation]
	evicted := meta.FindStatusCondition(w.Status.Conditions, kueue.WorkloadEvicted)
	return asked && evicted != nil && evicted.Status == metav1.ConditionTrue && evicted.Reason == kueue.WorkloadDeactivated
}

// deactivated is why nobody starts the AppWrapper of a Workload any more.
func deactivated(object any) string {
	w, ok := object.(*kueue.Workload)
	if !ok {
		return ""
	}
	return says(w).Deactivated
}
