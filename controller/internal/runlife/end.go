// SPDX-License-Identifier: Apache-2.0

package runlife

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mlbatch/mlbatch/controller/api/codeflare/v1alpha1"
	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/runplan"
)

// ended: the AppWrapper has succeeded or failed.
func ended(v *view) (Decision, bool) {
	aw := v.mine()
	if aw == nil {
		return Decision{}, false
	}
	switch aw.Status.Phase {
	case v1beta2.AppWrapperSucceeded:
		if (v.hasRepo() || runplan.HasQueue(v.Run)) && v.Pods == nil {
			return Decision{NeedsPods: true}, true
		}
		return v.succeed(Succeeded), true
	case v1beta2.AppWrapperFailed:
		if v.Pods == nil {
			return Decision{NeedsPods: true}, true
		}
		v.rememberFailure()
		v.rememberCommit() // the event is about the failure
		v.rememberQueue()
		reason, message := AppWrapperFailed, "its AppWrapper has failed"
		if c := v.ofAppWrapper(v1beta2.Unhealthy); isTrue(c) {
			reason, message = c.Reason, c.Message
		}
		return v.fail(reason, message), true
	}
	return Decision{}, false
}

func cancelled(v *view) (Decision, bool) {
	const message = "it was cancelled"
	if !v.Run.Spec.Cancel {
		return Decision{}, false
	}
	v.set(v1alpha1.Failed, metav1.ConditionTrue, Cancelled, message)
	return v.end(v1alpha1.RunCancelled, message).announcing(normal(Cancelled, actionEnd, message)), true
}

func overdue(v *view) (Decision, bool) {
	at, limited := v.deadline()
	if !limited || v.now.Before(at) {
		return Decision{}, false
	}
	return v.fail(DeadlineExceeded, "it has not ended within activeDeadlineSeconds after its startTime"), true
}

// deadline is when the Run fails, if it has started and has a deadline.
func (v *view) deadline() (at time.Time, limited bool) {
	seconds := v.Run.Spec.ActiveDeadlineSeconds
	if seconds == nil || v.status.StartTime == nil {
		return time.Time{}, false
	}
	return after(v.status.StartTime, *seconds), true
}

// after adds seconds, which may be more than a Duration holds.
func after(t *metav1.Time, seconds int64) time.Time {
	const century = 100 * 365 * 24 * 3600
	return t.Add(time.Duration(min(seconds, century)) * time.Second)
}

// removed: the AppWrapper is being deleted or gone, and the Run has not ended.
func removed(v *view) (Decision, bool) {
	aw := v.mine()
	gone := aw == nil && v.status.AppWrapper != nil
	going := aw != nil && (!aw.DeletionTimestamp.IsZero() || aw.Status.Phase == v1beta2.AppWrapperTerminating)
	if !gone && !going {
		return Decision{}, false
	}
	return v.fail(AppWrapperDeleted, "its AppWrapper was deleted: to run it again, make another Run"), true
}

func (v *view) succeed(reason string) Decision {
	const message = "it has succeeded"
	v.rememberQueue()
	event := normal(Succeeded, actionEnd, message)
	if differ := v.rememberCommit(); differ != nil {
		event = *differ
	}
	v.set(v1alpha1.Complete, metav1.ConditionTrue, reason, message)
	return v.end(v1alpha1.RunSucceeded, message).announcing(event)
}

func (v *view) fail(reason, message string) Decision {
	v.set(v1alpha1.Failed, metav1.ConditionTrue, reason, message)
	return v.end(v1alpha1.RunFailed, message).announcing(failedEvent(reason, message))
}

// end enters a final phase. Steps that have not ended will not.
func (v *view) end(phase v1alpha1.RunPhase, message string) Decision {
	v.stop(message)
	v.status.CompletionTime = &metav1.Time{Time: v.now}
	v.clear(v1alpha1.PodsReady, Ended)
	v.clear(v1alpha1.QuotaReserved, Ended)
	return v.enter(phase, message)
}

// afterTheEnd deletes the AppWrapper if the Run ended before it, and then the Run when its time
// comes. The status stays.
func afterTheEnd(v *view) Decision {
	if aw := v.mine(); aw != nil && aw.DeletionTimestamp.IsZero() && v.endedBefore() {
		return v.do(Delete)
	}
	if d, left := v.leftOfSteps(); left {
		return d
	}
	ttl := v.Run.Spec.TTLSecondsAfterFinished
	if ttl == nil || v.status.CompletionTime == nil {
		return v.stay()
	}
	if at := after(v.status.CompletionTime, int64(*ttl)); v.now.Before(at) {
		return v.stay().requeueAt(at, v.now)
	}
	return v.do(DeleteRun)
}

// afterTheRun deletes the AppWrapper of a Run that is being deleted: the garbage collector would
// wait for finalizers of the Run. Nothing is done if the AppWrapper is to be left behind.
func afterTheRun(v *view) Decision {
	orphaned := slices.Contains(v.Run.Finalizers, metav1.FinalizerOrphanDependents)
	if aw := v.mine(); aw != nil && aw.DeletionTimestamp.IsZero() && !orphaned {
		return v.do(Delete)
	}
	d, _ := v.leftOfSteps()
	return d
}

// endedBefore: the Run ended although its AppWrapper had not.
func (v *view) endedBefore() bool {
	if v.stored(v1alpha1.Complete).Reason == QueueClosed {
		return true
	}
	failed := v.stored(v1alpha1.Failed)
	return failed.Status == metav1.ConditionTrue && slices.Contains([]string{Cancelled, DeadlineExceeded}, failed.Reason)
}
