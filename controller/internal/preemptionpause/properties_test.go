// SPDX-License-Identifier: Apache-2.0

package preemptionpause

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

var anyWorkload = rapid.Custom(func(t *rapid.T) *kueue.Workload {
	status := rapid.SampledFrom([]metav1.ConditionStatus{"True", "False"}).Draw(t, "evicted")
	reason := rapid.SampledFrom([]string{kueue.WorkloadEvictedByPreemption, kueue.WorkloadEvictedByPodsReadyTimeout}).Draw(t, "reason")
	w := preempted(rapid.Int32Range(0, 12).Draw(t, "times"), evicted(status, reason))
	if rapid.Bool().Draw(t, "waits") {
		waits(seconds.Draw(t, "until"), rapid.SampledFrom([]string{FieldOwner, kueues}).Draw(t, "owner"))(w)
	}
	if rapid.Bool().Draw(t, "deactivated") {
		deactivate(w)
	}
	rapid.SampledFrom([]func(*kueue.Workload){func(*kueue.Workload) {}, byAnother, byWhatHasEnded}).Draw(t, "by")(w)
	return w
})

var seconds = rapid.Custom(func(t *rapid.T) time.Duration {
	return time.Duration(rapid.Int64Range(0, 5000).Draw(t, "seconds")) * time.Second
})

// A controller that stops at any time, decides late or with an old cache changes nothing.
func TestEveryPauseEndsAndIsWrittenOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w, now := anyWorkload.Draw(t, "workload"), begin.Add(seconds.Draw(t, "after"))
		set, ours := requeueAt(w)
		d := Default().Decide(w, now, unfinished)
		if d.Action != Nothing && !set.IsZero() && !ours && !d.Until.After(set) {
			t.Fatalf("Kueue's pause until %s is changed: %+v", set, d)
		}
		if d.Action == Nothing {
			return
		}
		d.Apply(w, now)
		if d.Action == Begin {
			waits(d.Until.Sub(begin), FieldOwner)(w)
			early := now.Add(seconds.Draw(t, "more"))
			if again := Default().Decide(w, early, unfinished); again.Action == Begin || early.Before(d.Until) != (again.Action == Nothing) {
				t.Fatalf("%s after %+v: %+v", early, d, again)
			}
			now = d.Until
			d = Default().Decide(w, now, unfinished)
			d.Apply(w, now)
		}
		if later := Default().Decide(w, now.Add(time.Hour), unfinished); later != (Decision{}) || w.Status.RequeueState != nil {
			t.Fatalf("the pause does not end: %+v, %+v", later, w.Status.RequeueState)
		}
	})
}
