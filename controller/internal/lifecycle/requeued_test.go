// SPDX-License-Identifier: Apache-2.0

package lifecycle_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/quotareason"
)

func isNotTerminating(m moment) bool { return m.status.Phase != v1beta2.AppWrapperTerminating }

func finishedIsTrue(m moment) bool {
	c := meta.FindStatusCondition(m.status.Conditions, string(v1beta2.Finished))
	if phase := m.status.Phase; phase != v1beta2.AppWrapperSucceeded && phase != v1beta2.AppWrapperFailed {
		return c == nil
	}
	return c != nil && c.Status == metav1.ConditionTrue && c.Reason == string(m.status.Phase)
}

// says is what Kueue says from now on.
func (w *world) says(word quotareason.Word) *world {
	word.Known = true
	w.kueue = word
	return w.again()
}

// again lets the controller look until nothing changes.
func (w *world) again() *world {
	w.Wait(w.waits)
	w.Settle()
	return w
}

func (w *world) conditionsOf(kinds ...v1beta2.AppWrapperCondition) string {
	var all []string
	for _, kind := range kinds {
		if c := meta.FindStatusCondition(w.status.Conditions, string(kind)); c != nil {
			all = append(all, fmt.Sprintf("%s=%s/%s", c.Type, c.Status, c.Reason))
		}
	}
	return strings.Join(all, " ")
}

func running1(t *testing.T) *world {
	t.Helper()
	w := newWorld(standardPolicy(), job("train", 1))
	w.broken = func(promise string) { t.Errorf("broken: %s", promise) }
	w.Settle()
	w.Admit()
	w.Settle()
	w.StartPods()
	w.Settle()
	return w
}

func (w *world) expectQuota(t *testing.T, when, want string, preemptions int32) {
	t.Helper()
	if got := w.conditionsOf(v1beta2.Requeued, v1beta2.Deactivated); got != want || w.status.Preemptions != preemptions {
		t.Errorf("%s: %q, %d preemptions; want %q, %d", when, got, w.status.Preemptions, want, preemptions)
	}
}

func TestProgramsCanTellWhyWorkWaitsAgain(t *testing.T) {
	w := running1(t)
	w.expectQuota(t, "while it runs for the first time", "", 0)
	w.Evict()
	w.Settle()
	w.expectQuota(t, "preempted", "Requeued=True/Preempted", 1)
	w.Pass(time.Hour)
	w.Settle()
	w.Admit()
	w.Settle()
	w.expectQuota(t, "admitted again", "Requeued=False/Admitted", 1)
	w.StartPods()
	w.Settle()
	w.Evict()
	w.says(quotareason.Word{Evicted: "PodsReadyTimeout"})
	w.expectQuota(t, "evicted for another reason", "Requeued=True/PodsReadyTimeout", 1)
}

// The watch of AppWrappers may be faster than the watch of Workloads.
func TestAPreemptionIsCountedWhenItIsKnown(t *testing.T) {
	w := running1(t)
	w.LoseNode(0)
	w.Evict()
	w.says(quotareason.Word{})
	w.expectQuota(t, "nobody says why", "Requeued=True/Suspended", 0)
	w.says(quotareason.Word{Evicted: "Preempted"})
	w.ReturnNode(0)
	w.Settle()
	w.expectQuota(t, "it is known at the end of the suspension", "Requeued=True/Preempted", 1)
}

func TestProgramsCanTellThatNobodyStartsTheWorkAgain(t *testing.T) {
	const tooLong = "DeactivatedDueToMaximumExecutionTimeExceeded"
	w := running1(t)
	w.Evict()
	w.says(quotareason.Word{Evicted: tooLong, Deactivated: tooLong})
	w.expectQuota(t, "deactivated", "Deactivated=True/MaximumExecutionTimeExceeded", 0)
	w.kueue = quotareason.Word{} // a controller that has just started does not watch Workloads yet
	w.again()
	w.expectQuota(t, "while nobody knows", "Deactivated=True/MaximumExecutionTimeExceeded", 0)
	w.says(quotareason.Word{Evicted: tooLong})
	w.expectQuota(t, "activated again", "Requeued=True/Reactivated Deactivated=False/Reactivated", 0)
	w.Admit()
	w.Settle()
	w.expectQuota(t, "admitted again", "Requeued=False/Admitted Deactivated=False/Reactivated", 0)
}

func TestWorkThatIsDeactivatedWhileItWaitsForTheFirstTimeSaysSo(t *testing.T) {
	w := newWorld(standardPolicy(), job("train", 1))
	w.Settle()
	w.says(quotareason.Word{Deactivated: "Deactivated"})
	w.expectQuota(t, "deactivated", "Deactivated=True/DeactivatedByHand", 0)
	w.says(quotareason.Word{})
	w.expectQuota(t, "activated again, and it never ran", "Deactivated=False/Reactivated", 0)
}

func TestRetriesAreCountedApart(t *testing.T) {
	w := running1(t)
	w.EndPods(0, "Failed", 1)
	w.Report(0, false)
	w.Settle()
	w.Pass(2 * time.Minute)
	w.Pass(6 * time.Minute) // its pods do not start in time
	w.Pass(2 * time.Minute)
	s := w.status
	if s.FailureRetries != 1 || s.StartupRetries != 1 || s.Retries != 2 {
		t.Errorf("%d because of failures, %d because of late starts, %d in all", s.FailureRetries, s.StartupRetries, s.Retries)
	}
}
