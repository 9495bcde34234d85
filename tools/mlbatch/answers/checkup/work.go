// SPDX-License-Identifier: Apache-2.0

package checkup

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/tools/mlbatch/quota"
)

// These are longer than what is normal.
const (
	longDeleting  = 15 * time.Minute
	longSuspended = 5 * time.Minute
)

func (o Objects) appWrapperDeleting() (found []sight) {
	for _, aw := range o.AppWrappers {
		if at := aw.DeletionTimestamp; at != nil && o.Now.Sub(at.Time) > longDeleting && len(aw.Finalizers) > 0 {
			found = append(found, of("AppWrapper "+aw.Namespace+"/"+aw.Name, "deleted", o.ago(*at), "finalizers", some(aw.Finalizers)))
		}
	}
	return found
}

func (o Objects) suspendedWithQuota() (found []sight) {
	for i := range o.Workloads {
		w := &o.Workloads[i]
		admitted := meta.FindStatusCondition(w.Status.Conditions, kueue.WorkloadAdmitted)
		if admitted == nil || admitted.Status != metav1.ConditionTrue || o.Now.Sub(admitted.LastTransitionTime.Time) <= longSuspended ||
			quota.Finished(w) {
			continue
		}
		if aw := o.wrapperOf(w); aw != nil && aw.DeletionTimestamp == nil && (aw.Spec.Suspend || aw.Status.Phase == v1beta2.AppWrapperSuspended) {
			found = append(found, of("AppWrapper "+aw.Namespace+"/"+aw.Name, "spec.suspend", fmt.Sprint(aw.Spec.Suspend), "phase", string(aw.Status.Phase),
				"Workload", w.Name, "admitted", o.ago(admitted.LastTransitionTime)))
		}
	}
	return found
}

func (o Objects) wrapperOf(w *kueue.Workload) *v1beta2.AppWrapper {
	owner, _ := quota.Owner(w)
	i := slices.IndexFunc(o.AppWrappers, func(aw v1beta2.AppWrapper) bool {
		return owner.Kind == v1beta2.AppWrapperKind && aw.Name == owner.Name && aw.Namespace == w.Namespace
	})
	if i < 0 {
		return nil
	}
	return &o.AppWrappers[i]
}

func (o Objects) ago(at metav1.Time) string {
	return o.Now.Sub(at.Time).Truncate(time.Minute).String() + " ago"
}
