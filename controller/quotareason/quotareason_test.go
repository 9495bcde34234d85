// SPDX-License-Identifier: Apache-2.0

package quotareason_test

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/mlbatch/mlbatch/controller/quotareason"
	"github.com/mlbatch/mlbatch/test/golden"
)

// waits is a Workload of which Kueue says this.
func waits(reason, message string) *kueue.Workload {
	return with(&kueue.Workload{}, kueue.WorkloadQuotaReserved, metav1.ConditionFalse, reason, message)
}

func with(w *kueue.Workload, kind string, status metav1.ConditionStatus, reason, message string) *kueue.Workload {
	w.Status.Conditions = append(w.Status.Conditions, metav1.Condition{Type: kind, Status: status, Reason: reason, Message: message})
	return w
}

func TestTheReasonIsThatOfKueue(t *testing.T) {
	const (
		unused = "couldn't assign flavors to pod set main: insufficient unused quota for cpu in flavor a, 2 more needed"
		never  = "couldn't assign flavors to pod set main: insufficient quota for cpu in flavor a, previously considered podsets requests (0) + current podset request (9) > maximum capacity (8)"
	)
	inactive := waits("Pending", unused)
	inactive.Spec.Active = ptr.To(false)
	evicted := func(reason, said, message string) *kueue.Workload {
		return with(waits(said, message), kueue.WorkloadEvicted, metav1.ConditionTrue, reason, "")
	}
	checked := func(state kueue.CheckState, admitted metav1.ConditionStatus) *kueue.Workload {
		w := with(with(&kueue.Workload{}, kueue.WorkloadQuotaReserved, metav1.ConditionTrue, "QuotaReserved", ""), kueue.WorkloadAdmitted, admitted, "x", "")
		w.Status.AdmissionChecks = []kueue.AdmissionCheckState{{Name: "first", State: kueue.CheckStateReady}, {Name: "second", State: state}}
		return w
	}
	for name, row := range map[string]struct {
		workload *kueue.Workload
		want     quotareason.Reason
	}{
		"nothing is said":                        {&kueue.Workload{}, ""},
		"it has quota":                           {with(&kueue.Workload{}, kueue.WorkloadQuotaReserved, metav1.ConditionTrue, "QuotaReserved", ""), ""},
		"it has ended":                           {with(waits("Pending", unused), kueue.WorkloadFinished, metav1.ConditionTrue, "Succeeded", ""), ""},
		"Kueue will look at it":                  {waits("PendingEvaluation", ""), ""},
		"a granular reason":                      {waits("ExceedsMaxQuota", unused), quotareason.ExceedsMaxQuota},
		"too little is free":                     {waits("Pending", unused), quotareason.WaitingForQuota},
		"too little is free, in a granular word": {waits("WaitingForQuota", "no message that is known"), quotareason.WaitingForQuota},
		"it never fits":                          {waits("Pending", never), quotareason.ExceedsMaxQuota},
		"one flavor is too small, and another is in use": {waits("Pending", never+", "+unused), quotareason.WaitingForQuota},
		"it waits for preempted work":                    {waits("Pending", unused+". Pending the preemption of 1 workload(s)"), quotareason.WaitingForPreempted},
		"it waits for work that others preempt":          {waits("Pending", "Workload has overlapping preemption targets with another workload, but will fit after these preemptions complete"), quotareason.WaitingForPreempted},
		"a resource is not covered":                      {waits("Pending", "resource a/b unavailable in ClusterQueue"), quotareason.ResourceNotCovered},
		"it is above the limit":                          {waits("Misconfigured", "didn't satisfy limitRange max"), quotareason.AboveLimitRange},
		"its queue is inactive":                          {waits("Suspended", "ClusterQueue blue is inactive"), quotareason.QueueStopped},
		"its queue is missing":                           {waits("Inadmissible", "LocalQueue x doesn't exist"), quotareason.Inadmissible},
		"a word that nobody knows":                       {waits("Moonphase", ""), "Moonphase"},
		"it was deactivated":                             {inactive, quotareason.Deactivated},
		"it was preempted":                               {evicted("Preempted", "Pending", "Preempted to accommodate a workload"), quotareason.Preempted},
		"it was preempted, and Kueue looked again":       {evicted("Preempted", "Pending", unused), quotareason.WaitingForQuota},
		"it has quota, and a check is not ready":         {checked(kueue.CheckStatePending, metav1.ConditionFalse), quotareason.AdmissionChecks},
		"it has quota, and all checks are ready":         {checked(kueue.CheckStateReady, metav1.ConditionFalse), ""},
		"it is admitted, and a check is asked again":     {checked(kueue.CheckStatePending, metav1.ConditionTrue), ""},
		"its queue was stopped":                          {evicted("ClusterQueueStopped", "Pending", ""), quotareason.QueueStopped},
	} {
		t.Run(name, func(t *testing.T) {
			if got := quotareason.Of(row.workload); got != row.want {
				t.Errorf("got %q, want %q", got, row.want)
			}
		})
	}
}

// Numbers change all the time, and each change would be a write.
func TestSentencesHaveNoNumbers(t *testing.T) {
	for _, reason := range append([]quotareason.Entry{{Reason: "Moonphase"}}, quotareason.All...) {
		if s := quotareason.Sentence(reason.Reason); s == "" || strings.ContainsAny(s, "0123456789") {
			t.Errorf("%s: %q", reason.Reason, s)
		}
	}
}

func TestThePageListsTheReasons(t *testing.T) {
	var table strings.Builder
	table.WriteString("\n| reason | message |\n|---|---|\n")
	for _, e := range quotareason.All {
		fmt.Fprintf(&table, "| `%s` | %s |\n", e.Reason, e.Sentence)
	}
	golden.Between(t, "../../docs/api/appwrapper.md", "<!-- reasons: written by go test ./controller/quotareason -update -->\n", "\n<!-- end of reasons -->", table.String())
}

func TestThePageListsWhyWorkWaitsAgain(t *testing.T) {
	var table strings.Builder
	for _, of := range []struct {
		condition string
		all       []quotareason.Entry
	}{{"Requeued", quotareason.Evictions}, {"Deactivated", quotareason.Deactivations}} {
		fmt.Fprintf(&table, "\n| reason of `%s` | message |\n|---|---|\n", of.condition)
		for _, e := range of.all {
			fmt.Fprintf(&table, "| `%s` | %s |\n", e.Reason, e.Sentence)
		}
	}
	golden.Between(t, "../../docs/api/appwrapper.md", "<!-- evictions: written by go test ./controller/quotareason -update -->\n", "\n<!-- end of evictions -->", table.String())
}

// The word is a valid reason of a condition, and the sentence says who did it.
func TestADeactivationSaysWhoAndWhy(t *testing.T) {
	for said, want := range map[string]string{
		"Deactivated": "DeactivatedByHand: a person or another program has set",
		"DeactivatedDueToMaximumExecutionTimeExceeded": "MaximumExecutionTimeExceeded: Kueue has deactivated it, because it has run",
		"DeactivatedDueToIdle":                         "Idle: MLBatch has deactivated it",
		"DeactivatedDueToMoonphase":                    "Moonphase: Kueue has deactivated it: its Workload says more",
	} {
		word, means := quotareason.Deactivation(said)
		if got := word + ": " + means; !strings.HasPrefix(got, want) {
			t.Errorf("%s: %s", said, got)
		}
	}
}
