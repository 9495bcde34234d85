// SPDX-License-Identifier: Apache-2.0

// Package quotareason answers: why is this Workload not admitted, in a word and a fixed
// sentence? It repeats what Kueue says, and may not decide anything.
//
// Kueue has granular reasons behind a feature gate. Without it, the reason is Pending, and only the
// message tells more. The numbers of that message change often, so they are not repeated.
package quotareason

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// Reason is the reason of a condition. Those without an entry in All are Kueue's own.
type Reason string

// Kueue's granular reasons, and what it says without a reason of its own.
const (
	WaitingForQuota     Reason = kueue.WorkloadQuotaReservedReasonWaitingForQuota
	ExceedsMaxQuota     Reason = kueue.WorkloadQuotaReservedReasonExceedsMaxQuota
	ResourceNotCovered  Reason = "ResourceNotCovered"
	NoMatchingFlavor    Reason = kueue.WorkloadQuotaReservedReasonNoMatchingFlavor
	TopologyFailed      Reason = kueue.WorkloadQuotaReservedReasonTopologyPlacementFailed
	AboveLimitRange     Reason = "AboveLimitRange"
	WaitingForPreempted Reason = kueue.WorkloadQuotaReservedReasonWaitingForPreemptedWorkloads
	WaitingForPodsReady Reason = kueue.WorkloadQuotaReservedReasonWaitingForPodsReady
	Preempted           Reason = kueue.WorkloadEvictedByPreemption
	PodsReadyTimeout    Reason = kueue.WorkloadEvictedByPodsReadyTimeout
	QueueStopped        Reason = "QueueStopped"
	Inadmissible        Reason = kueue.WorkloadInadmissible
	Misconfigured       Reason = kueue.WorkloadQuotaReservedReasonMisconfigured
	Deactivated         Reason = "Deactivated"
	AdmissionChecks     Reason = "AdmissionChecks"
)

// Entry is a reason with its sentence.
type Entry struct {
	Reason   Reason
	Sentence string
}

// All has the reasons with sentences. docs/api/appwrapper.md prints it.
var All = []Entry{
	{WaitingForQuota, "there is too little unused quota"},
	{ExceedsMaxQuota, "it requests more than its queue can ever have"},
	{ResourceNotCovered, "it requests a resource for which its queue has no quota"},
	{NoMatchingFlavor, "no flavor of its queue has the nodes that it selects or tolerates"},
	{TopologyFailed, "there is quota, but its pods do not fit into the topology as it requires"},
	{AboveLimitRange, "a pod requests more, or less, than the LimitRange of its namespace allows"},
	{WaitingForPreempted, "it gets quota as soon as the work that is being preempted has stopped"},
	{WaitingForPodsReady, "Kueue first waits for the pods of other work"},
	{Preempted, "other work took its quota"},
	{PodsReadyTimeout, "Kueue evicted it, because its pods were not ready in time"},
	{QueueStopped, "an administrator stopped its queue"},
	{Inadmissible, "its queue does not exist or is not active"},
	{Misconfigured, "its queue does not admit work of its namespace, or does not exist"},
	{Deactivated, "its Workload was deactivated"},
	{AdmissionChecks, "it has quota, but an admission check is not ready"},
}

// Sentence is what a reason means. It never changes while the reason stays the same.
func Sentence(r Reason) string {
	for _, e := range All {
		if e.Reason == r {
			return e.Sentence
		}
	}
	return "Kueue has not admitted it: its Workload says more"
}

// Of is why a Workload is not admitted; empty if it is, or if Kueue has not looked at it yet.
func Of(w *kueue.Workload) Reason {
	conditions := w.Status.Conditions
	c := meta.FindStatusCondition(conditions, kueue.WorkloadQuotaReserved)
	switch {
	case c == nil || meta.IsStatusConditionTrue(conditions, kueue.WorkloadFinished):
		return ""
	case c.Status == metav1.ConditionTrue:
		return checked(w)
	case w.Spec.Active != nil && !*w.Spec.Active:
		return Deactivated
	}
	found := Classify(*c)
	if evicted := meta.FindStatusCondition(conditions, kueue.WorkloadEvicted); general(found) && evicted != nil && evicted.Status == metav1.ConditionTrue {
		found = evictedBecause(evicted.Reason)
	}
	if found == kueue.WorkloadQuotaReservedReasonPendingEvaluation {
		return "" // Kueue has not decided yet, and will in a moment
	}
	return found
}

// checked is about a Workload that has quota.
func checked(w *kueue.Workload) Reason {
	waits := slices.ContainsFunc(w.Status.AdmissionChecks, func(c kueue.AdmissionCheckState) bool { return c.State != kueue.CheckStateReady })
	if !waits || meta.IsStatusConditionTrue(w.Status.Conditions, kueue.WorkloadAdmitted) {
		return ""
	}
	return AdmissionChecks
}

// pending is what Kueue says without granular reasons.
const pending Reason = "Pending"

// general: the reason says only that it is not admitted.
func general(r Reason) bool {
	return r == pending || r == kueue.WorkloadQuotaReservedReasonPendingEvaluation
}

func evictedBecause(reason string) Reason {
	switch reason {
	case kueue.WorkloadEvictedByClusterQueueStopped, kueue.WorkloadEvictedByLocalQueueStopped:
		return QueueStopped
	}
	return Reason(reason)
}

// decisive are reasons that say all.
var decisive = map[Reason]bool{
	ExceedsMaxQuota: true, NoMatchingFlavor: true, TopologyFailed: true, WaitingForPreempted: true, WaitingForPodsReady: true,
}

// phrases are what Kueue writes if its reason does not tell. The order matters: a message may have
// several.
var phrases = []struct {
	words  string
	reason Reason
}{
	{"unavailable in ClusterQueue", ResourceNotCovered},
	{"insufficient quota for", ExceedsMaxQuota},
	{"Pending the preemption of", WaitingForPreempted},
	{"but will fit after these preemptions complete", WaitingForPreempted},
	{"waiting for all admitted workloads to be in PodsReady", WaitingForPodsReady},
	{"topology", TopologyFailed},
	{"limitRange", AboveLimitRange},
	{"untolerated taint", NoMatchingFlavor},
	{"doesn't match node affinity", NoMatchingFlavor},
}

// Classify sorts the condition QuotaReserved of a Workload that waits.
func Classify(c metav1.Condition) Reason {
	reason := Reason(c.Reason)
	if decisive[reason] {
		return reason
	}
	// What is free in one flavor decides, whatever other flavors lack.
	unused := strings.Contains(c.Message, "insufficient unused quota for")
	for _, p := range phrases {
		if strings.Contains(c.Message, p.words) && (!unused || p.reason == WaitingForPreempted) {
			return p.reason
		}
	}
	switch {
	case unused:
		return WaitingForQuota
	case reason == kueue.WorkloadQuotaReservedReasonSuspended:
		return QueueStopped
	}
	return reason
}
