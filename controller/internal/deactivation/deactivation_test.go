// SPDX-License-Identifier: Apache-2.0

package deactivation_test

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/mlbatch/mlbatch/controller/internal/deactivation"
)

var now = time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)

// admitted is a Workload with quota, and with these changes.
func admitted(changes ...func(*kueue.Workload)) *kueue.Workload {
	w := &kueue.Workload{}
	with(kueue.WorkloadQuotaReserved, "QuotaReserved")(w)
	for _, change := range changes {
		change(w)
	}
	return w
}

func with(kind, reason string) func(*kueue.Workload) {
	return func(w *kueue.Workload) {
		w.Status.Conditions = append(w.Status.Conditions, metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: reason})
	}
}

func without(kind string) func(*kueue.Workload) {
	return func(w *kueue.Workload) { meta.RemoveStatusCondition(&w.Status.Conditions, kind) }
}

func inactive(w *kueue.Workload) { w.Spec.Active = new(false) }

var (
	ours    = with(kueue.WorkloadDeactivationTarget, deactivation.Reason)
	theirs  = with(kueue.WorkloadDeactivationTarget, "AdmissionCheck")
	evicted = with(kueue.WorkloadEvicted, "DeactivatedDueToIdle")
	barred  = because("DeactivatedDueToIdle")
)

// because is why Kueue does not queue the Workload again.
func because(reason string) func(*kueue.Workload) {
	return func(w *kueue.Workload) {
		w.Status.Conditions = append(w.Status.Conditions, metav1.Condition{Type: kueue.WorkloadRequeued, Status: metav1.ConditionFalse, Reason: reason})
	}
}

func TestTheQuotaIsRequestedOnce(t *testing.T) {
	for sentence, tc := range map[string]struct {
		w    *kueue.Workload
		want bool
	}{
		"of one that has quota":                 {admitted(), true},
		"that was requested":                    {admitted(ours), false},
		"that another controller requested":     {admitted(theirs), false},
		"of one that has none":                  {admitted(without(kueue.WorkloadQuotaReserved)), false},
		"of one that was deactivated by a user": {admitted(inactive), false},
	} {
		before := tc.w.DeepCopy()
		if got := deactivation.Request(tc.w, "why", now); got != tc.want {
			t.Errorf("%s: it changes: %t", sentence, got)
		}
		if c := meta.FindStatusCondition(tc.w.Status.Conditions, kueue.WorkloadDeactivationTarget); tc.want && (c.Message != "why" || !c.LastTransitionTime.Time.Equal(now) || !deactivation.Requested(tc.w)) {
			t.Errorf("%s: it says %v, and before %v", sentence, c, before.Status.Conditions)
		}
	}
}

// The condition that stays would deactivate the Workload again when a user activates it.
func TestOurConditionGoesWhenItIsDone(t *testing.T) {
	for sentence, tc := range map[string]struct {
		w    *kueue.Workload
		want bool
	}{
		"Kueue has taken the quota back":    {admitted(ours, inactive, evicted), true},
		"Kueue has not seen it yet":         {admitted(ours), false},
		"Kueue has only deactivated it yet": {admitted(ours, inactive), false},
		"it is not ours":                    {admitted(theirs, inactive, evicted), false},
		"there is none":                     {admitted(inactive, evicted), false},
		"Kueue would not queue it again":    {admitted(inactive, evicted, barred), true},
		"a user has activated it meanwhile": {admitted(barred), true},
		"a user has deactivated it":         {admitted(inactive, because(kueue.WorkloadDeactivated)), false},
		"another is why it is not queued":   {admitted(inactive, because("DeactivatedDueToAdmissionCheck")), false},
	} {
		if got := deactivation.Done(tc.w); got != tc.want {
			t.Errorf("%s: it is done: %t", sentence, got)
		}
	}
	w := admitted(ours, inactive, evicted)
	deactivation.Forget(w)
	if deactivation.Requested(w) || len(w.Status.Conditions) != 2 {
		t.Errorf("it still has %v", w.Status.Conditions)
	}
	w = admitted(inactive, evicted, barred)
	deactivation.Forget(w)
	if c := meta.FindStatusCondition(w.Status.Conditions, kueue.WorkloadRequeued); c.Reason != kueue.WorkloadDeactivated || c.Status != metav1.ConditionFalse || deactivation.Done(w) {
		t.Errorf("Kueue would not queue it again: %+v", c)
	}
	others := admitted(theirs, inactive, evicted)
	if deactivation.Forget(others) || len(others.Status.Conditions) != 3 {
		t.Error("the condition of another is removed")
	}
}
