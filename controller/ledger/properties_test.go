// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"os"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/test/sameseed"
)

func TestMain(m *testing.M) { os.Exit(sameseed.Run(m)) }

// Whatever statuses follow each other, and whenever they are saved: the classes add up to the time for
// which quota was reserved, to a second for each reservation, and no sum falls but what is in flight.
// The lives that the controller can lead are in the walks of package lifecycle.
func TestTheBooksBalance(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		now, s := began, v1beta2.AppWrapperStatus{}
		var reserved, tolerance time.Duration
		for range rapid.IntRange(1, 30).Draw(t, "saves") {
			pause := upTo(time.Hour).Draw(t, "pause")
			now = now.Add(pause)
			after, facts := drawStatus(t), Facts{Checkpoint: now.Add(-upTo(2*time.Hour).Draw(t, "checkpoint"))}
			if rapid.Bool().Draw(t, "deleted") {
				facts.Deleted = now.Add(-upTo(2*time.Hour).Draw(t, "deletion"))
			}
			if isTrue(s, v1beta2.QuotaReserved) {
				reserved += pause
			} else if isTrue(after, v1beta2.QuotaReserved) {
				waited := upTo(pause).Draw(t, "waited")
				facts.Reserved = now.Add(-waited)
				reserved, tolerance = reserved+waited, tolerance+time.Second
			}
			after.Usage = Post(s, after, facts, now)
			if s.Usage != nil {
				mustNotFall(t, *s.Usage, *after.Usage)
			}
			s = after
			if off := Sum(Until(s, now)) - reserved; off.Abs() > tolerance {
				t.Fatalf("after %s of quota the books are off by %s", reserved, off)
			}
		}
	})
}

func upTo(d time.Duration) *rapid.Generator[time.Duration] {
	return rapid.Map(rapid.Int64Range(0, int64(d)), func(n int64) time.Duration { return time.Duration(n) })
}

func drawStatus(t *rapid.T) v1beta2.AppWrapperStatus {
	s := v1beta2.AppWrapperStatus{Phase: rapid.SampledFrom([]v1beta2.AppWrapperPhase{
		v1beta2.AppWrapperSuspended, v1beta2.AppWrapperResuming, v1beta2.AppWrapperRunning, v1beta2.AppWrapperResetting,
		v1beta2.AppWrapperSuspending, v1beta2.AppWrapperSucceeded, v1beta2.AppWrapperFailed, v1beta2.AppWrapperTerminating,
	}).Draw(t, "phase")}
	for _, kind := range []v1beta2.AppWrapperCondition{v1beta2.QuotaReserved, v1beta2.PodsReady, v1beta2.Unhealthy, v1beta2.Idle, v1beta2.DeletingResources} {
		condition := metav1.ConditionStatus(rapid.SampledFrom([]string{"True", "False"}).Draw(t, string(kind)))
		reason := rapid.SampledFrom([]string{v1beta2.ReasonInsufficientPodsReady, v1beta2.ReasonAutopilotNoExecute}).Draw(t, "reason")
		s.Conditions = append(s.Conditions, metav1.Condition{Type: string(kind), Status: condition, Reason: reason})
	}
	return s
}

func mustNotFall(t *rapid.T, before, after v1beta2.AppWrapperUsage) {
	for _, class := range Classes() {
		if class != InFlight && *In(&after, class) < *In(&before, class) {
			t.Fatalf("%s fell from %d to %d", class, *In(&before, class), *In(&after, class))
		}
	}
}
