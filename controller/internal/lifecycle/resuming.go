// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/internal/kinds"
)

// deploy enters Resuming. The same write records the intent to create each component under
// its name, so that whatever is created can be found and removed.
func (v *view) deploy(message string) Decision {
	const reason = string(v1beta2.AppWrapperResuming)
	v.set(v1beta2.ResourcesDeployed, metav1.ConditionTrue, reason, message)
	v.set(v1beta2.PodsReady, metav1.ConditionFalse, v.notReadyReason(), "")
	v.set(v1beta2.Unhealthy, metav1.ConditionFalse, reason, "")
	v.clear(v1beta2.Idle, reason, "")
	v.clear(v1beta2.Requeued, v1beta2.ReasonAdmitted, "")
	v.clear(v1beta2.Deactivated, v1beta2.ReasonAdmitted, "")
	for i := range v.Components {
		v.recordIntent(i)
		v.forget(i, v1beta2.ComponentSucceeded)
		v.status.ComponentStatus[i].SucceededPods, v.status.ComponentStatus[i].SucceededPodsUntil = nil, ""
	}
	v.clear(v1beta2.ComputesWithoutProgress, reason, "")
	v.boundAvoidance()
	return v.announcingAvoidance(v.move(v1beta2.AppWrapperResuming))
}

func (v *view) recordIntent(i int) {
	c, status := v.Components[i], &v.status.ComponentStatus[i]
	status.Name, status.Kind, status.APIVersion = c.Name, c.Kind, c.APIVersion
	v.setComponent(i, v1beta2.ResourcesDeployed, metav1.ConditionUnknown, v1beta2.ReasonComponentCreationInitiated)
	v.forget(i, v1beta2.ComponentRefused)
	v.forget(i, v1beta2.ComponentUnanswered)
}

// intentMissing: component i is to be created and the status does not say so, because another
// AppWrapper controller records that only when it comes to the component. Or component i
// exists, and the status still has the error that came instead of the answer to its creation.
func (v *view) intentMissing(i int) bool {
	c := v.componentCondition(i, v1beta2.ResourcesDeployed)
	if !v.absent(i) {
		return c != nil && c.Reason == v1beta2.ReasonComponentCreationErrored
	}
	if v.refusedForNow(i) || v.refusedForGood(i) {
		return false
	}
	return c == nil || c.Status == metav1.ConditionFalse || v.status.ComponentStatus[i].Name != v.Components[i].Name
}

// resuming creates components until all exist. It does not create one again that has
// succeeded before the others exist.
func resuming(v *view) Decision {
	v.rememberSuccess()
	if v.Suspend {
		return v.suspend().because(CauseSuspended)
	}
	absent := v.where(v.absent)
	if len(absent) == 0 && !v.someAreTerminating() {
		return v.run()
	}
	if intentMissing := v.where(v.intentMissing); len(intentMissing) > 0 {
		for _, i := range intentMissing {
			v.recordIntent(i)
		}
		return v.stay()
	}
	if rejected := v.where(v.refusedForGood); len(rejected) > 0 {
		return v.fail(v1beta2.ReasonCreateFailed, v.refusalMessage(rejected[0])).because(CauseCreationRejected)
	}
	return v.attempt(absent)
}

// attempt creates these components, or pauses after a refusal. After the admission grace it
// fails only if a creation was refused or an old component still exists: what was never
// tried has not failed. An attempt that was due within the grace is made however late it is,
// because no controller may have run, or there was a queue.
func (v *view) attempt(absent []int) Decision {
	deadline, next := v.firstRefusal().Add(v.Policy.AdmissionGrace), v.nextAttempt()
	refused := v.where(v.refusedForNow)
	if !v.unansweredSince(refused).IsZero() {
		deadline = v.now.Add(max(v.Policy.AdmissionGrace, longestPause)) // its clock stands still
	}
	late := !v.now.Before(deadline)
	if late && len(refused) > 0 && !next.Before(deadline) {
		return v.resetOrFail(v1beta2.ReasonCreateFailed, v.refusalMessage(refused[0])).because(CauseCreationRefused)
	}
	if late && len(absent) == 0 {
		return v.resetOrFail(v1beta2.ReasonCreateFailed, "a component is being deleted and does not go away").because(CauseOldComponentRemains)
	}
	if v.now.Before(next) {
		return v.stay().requeueAt(earlier(next, deadline), v.now)
	}
	if len(absent) == 0 {
		return v.stay().requeueAt(deadline, v.now)
	}
	return v.do(Create, absent).requeueAt(deadline, v.now)
}

// absent: component i is still to be created. One that has failed and is gone is not created
// again: Running deals with its failure.
func (v *view) absent(i int) bool {
	c := v.Components[i]
	return !c.Exists && c.Verdict != kinds.Failed && !v.finished(i)
}

func (v *view) someAreTerminating() bool {
	return len(v.where(func(i int) bool { return v.Components[i].Terminating && !v.finished(i) })) > 0
}

// refusedForNow: the last attempt to create component i was refused, but another may succeed.
func (v *view) refusedForNow(i int) bool {
	return v.refused(i, v1beta2.ReasonComponentCreationErrored)
}

// refusedForGood: another attempt to create component i cannot succeed.
func (v *view) refusedForGood(i int) bool {
	return v.refused(i, v1beta2.ReasonComponentCreationRejected)
}

// refused: component i does not exist because its creation failed with that reason.
func (v *view) refused(i int, reason string) bool {
	c := v.componentCondition(i, v1beta2.ResourcesDeployed)
	return v.absent(i) && c != nil && c.Reason == reason
}

func (v *view) refusalMessage(i int) string {
	s := v.status.ComponentStatus[i]
	return fmt.Sprintf("%s %q could not be created: %s", s.Kind, s.Name, v.componentCondition(i, v1beta2.ResourcesDeployed).Message)
}
