// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	workload "github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/tools/mlbatch/quota"
)

func isTrue(w kueue.Workload, condition string) bool {
	return meta.IsStatusConditionTrue(w.Status.Conditions, condition)
}

// overQuota: the admitted work of a ClusterQueue or a cohort uses no more than its quota. Kueue
// lets work run whose quota was lowered later.
func (l look) overQuota() []Finding {
	use, admitted := quota.Use{}, map[string]time.Time{}
	for _, w := range l.Workloads {
		if !quota.Holds(&w) || deactivated(w) {
			continue
		}
		queue := string(w.Status.Admission.ClusterQueue)
		if use[queue] == nil {
			use[queue] = map[quota.Cell]resource.Quantity{}
		}
		countAdmission(use[queue], w)
		at := meta.FindStatusCondition(w.Status.Conditions, kueue.WorkloadQuotaReserved).LastTransitionTime.Time
		admitted[queue] = latest(admitted[queue], at)
	}
	var found []Finding
	for _, e := range (quota.Tree{Queues: l.Queues, Cohorts: l.Cohorts}).Exceeded(use) {
		f := Finding{
			Object:   e.Kind + " " + e.Name,
			Evidence: fmt.Sprintf("its admitted work uses %s %s of flavor %s, and may use %s", e.Used.String(), e.Cell.Resource, e.Cell.Flavor, e.Most.String()),
		}
		var last time.Time
		for _, queue := range e.Queues {
			last = latest(last, admitted[queue])
		}
		if changed := l.quotaChanged(e.Queues); changed.After(last) {
			f.Note = true
			f.Evidence += fmt.Sprintf(": the quota was changed at %s, after the last admission", changed.UTC().Format(time.RFC3339))
		}
		found = append(found, f)
	}
	return found
}

// countAdmission adds what a Workload uses, without what its ended pods have given back.
func countAdmission(use map[quota.Cell]resource.Quantity, w kueue.Workload) {
	for _, a := range w.Status.Admission.PodSetAssignments {
		for name, amount := range a.ResourceUsage {
			cell := quota.Cell{Flavor: a.Flavors[name], Resource: name}
			total := use[cell]
			total.Add(stillUsed(amount, a, w.Status.ReclaimablePods))
			use[cell] = total
		}
	}
}

func stillUsed(amount resource.Quantity, a kueue.PodSetAssignment, reclaimable []kueue.ReclaimablePod) resource.Quantity {
	i := slices.IndexFunc(reclaimable, func(r kueue.ReclaimablePod) bool { return r.Name == a.Name })
	if i < 0 || a.Count == nil || *a.Count == 0 {
		return amount
	}
	count := int64(*a.Count)
	return *resource.NewMilliQuantity(amount.MilliValue()/count*(count-int64(reclaimable[i].Count)), amount.Format)
}

// quotaChanged is when the spec of one of these queues, or of a cohort, was last written.
func (l look) quotaChanged(queues []string) time.Time {
	var last time.Time
	for i := range l.Queues {
		if slices.Contains(queues, l.Queues[i].Name) {
			last = latest(last, specWritten(&l.Queues[i]))
		}
	}
	for i := range l.Cohorts {
		last = latest(last, specWritten(&l.Cohorts[i]))
	}
	return last
}

func specWritten(o metav1.Object) time.Time {
	last := o.GetCreationTimestamp().Time
	for _, f := range o.GetManagedFields() {
		if f.Subresource == "" && f.Time != nil {
			last = latest(last, f.Time.Time)
		}
	}
	return last
}

func latest(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// orphans: what holds quota belongs to something that exists, and an AppWrapper with pods cannot
// go before them.
func (l look) orphans() []Finding {
	var found []Finding
	for _, w := range l.Workloads {
		if reason := l.ownerless(w); l.audited(w.Namespace) && quota.Holds(&w) && reason != "" {
			found = append(found, Finding{Object: "Workload " + w.Namespace + "/" + w.Name, Evidence: "it holds quota in " + string(w.Status.Admission.ClusterQueue) + ", and " + reason})
		}
	}
	for _, aw := range l.AppWrappers {
		if deploys(aw) && !slices.Contains(aw.Finalizers, workload.AppWrapperFinalizer) {
			found = append(found, Finding{
				Object:   "AppWrapper " + aw.Namespace + "/" + aw.Name,
				Evidence: fmt.Sprintf("it is %s and has lost its finalizer, so its pods can outlive it", aw.Status.Phase),
			})
		}
	}
	return found
}

// deploys reports whether an AppWrapper may have components. Those of other controllers are not
// ours to judge.
func deploys(aw workload.AppWrapper) bool {
	if aw.Spec.ManagedBy != nil && *aw.Spec.ManagedBy != workload.AppWrapperControllerName {
		return false
	}
	switch aw.Status.Phase {
	case workload.AppWrapperResuming, workload.AppWrapperRunning, workload.AppWrapperResetting, workload.AppWrapperSuspending:
		return true
	}
	return false
}

// ownerless says what is wrong with the owners of a Workload. An owner that cannot be read may
// exist. If it does not, the garbage collector deletes the Workload, which may take a while.
func (l look) ownerless(w kueue.Workload) string {
	for _, o := range w.OwnerReferences {
		if _, exists := l.objects[o.UID]; exists || l.Unread[o.Kind] != "" {
			return ""
		}
	}
	overdue := w.DeletionTimestamp != nil && !l.Time.Before(w.DeletionTimestamp.Add(l.Grace))
	switch {
	case len(w.OwnerReferences) == 0 && (w.DeletionTimestamp == nil || overdue):
		return "belongs to nothing"
	case overdue:
		return fmt.Sprintf("was deleted at %s, and its owner %s %s does not exist",
			w.DeletionTimestamp.UTC().Format(time.RFC3339), w.OwnerReferences[0].Kind, w.OwnerReferences[0].Name)
	}
	return ""
}

// idleQuota: quota is held for work that has pods, or will have some soon.
func (l look) idleQuota() []Finding {
	withPods := map[Holder]bool{}
	for _, p := range l.Pods {
		withPods[l.holder(p)] = true
	}
	var found []Finding
	for _, w := range l.Workloads {
		since := l.lastEvent(w)
		if !l.audited(w.Namespace) || !usesQuota(w) || withPods[WorkloadHolder(w)] || l.Time.Sub(since) < 5*l.Grace {
			continue
		}
		found = append(found, Finding{
			Object:   WorkloadHolder(w).String(),
			Evidence: fmt.Sprintf("Workload %s holds quota in %s, and there is no pod; nothing has happened since %s", w.Name, w.Status.Admission.ClusterQueue, since.UTC().Format(time.RFC3339)),
		})
	}
	return found
}

// usesQuota reports whether the pods of a Workload may run on this cluster.
func usesQuota(w kueue.Workload) bool {
	pods := int32(0)
	for _, podSet := range w.Spec.PodSets {
		pods += podSet.Count
	}
	return pods > 0 && quota.Holds(&w) && !deactivated(w) && isTrue(w, kueue.WorkloadAdmitted) && w.Status.ClusterName == nil
}

// lastEvent is when a condition of a Workload or of its AppWrapper last changed.
func (l look) lastEvent(w kueue.Workload) time.Time {
	conditions := w.Status.Conditions
	holder := WorkloadHolder(w)
	for _, aw := range l.AppWrappers {
		if holder.Kind == workload.AppWrapperKind && aw.Namespace == holder.Namespace && aw.Name == holder.Name {
			conditions = slices.Concat(conditions, aw.Status.Conditions)
		}
	}
	var last time.Time
	for _, c := range conditions {
		last = latest(last, c.LastTransitionTime.Time)
	}
	return last
}
