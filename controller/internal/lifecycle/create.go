// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
)

// unseen is the phase "": the pod sets are written down once and for all.
func unseen(v *view) Decision {
	v.status.ComponentStatus = initialComponents(v.Components)
	if v.Problem != "" {
		return v.fail(v1beta2.ReasonCreateFailed, v.Problem).because("the AppWrapper makes no sense")
	}
	for i, c := range v.Components {
		if c.Problem != "" {
			return v.fail(v1beta2.ReasonCreateFailed, fmt.Sprintf("component %d cannot be deployed: %s", i, c.Problem)).because("a component makes no sense")
		}
	}
	return v.move(v1beta2.AppWrapperSuspended).because("accepted")
}

func initialComponents(components []Component) []v1beta2.AppWrapperComponentStatus {
	status := make([]v1beta2.AppWrapperComponentStatus, len(components))
	for i, c := range components {
		status[i] = v1beta2.AppWrapperComponentStatus{
			Kind:       c.Kind,
			APIVersion: c.APIVersion,
			PodSets:    append([]v1beta2.AppWrapperPodSet{}, c.PodSets...),
		}
	}
	return status
}

// suspended waits for quota. The finalizer comes first, so that nothing is ever
// deployed that a deletion could leave behind.
func suspended(v *view) Decision {
	if v.Suspend {
		return v.stay()
	}
	if !v.admittedAsAWhole() {
		v.set(v1beta2.QuotaReserved, metav1.ConditionFalse, string(v1beta2.AppWrapperSuspended),
			"spec.suspend is false, but not every pod set of status.componentStatus has its podSetInfo: waiting for quota for all of them")
		return v.stay()
	}
	if !v.Guarded {
		return v.do(Guard, nil)
	}
	v.set(v1beta2.QuotaReserved, metav1.ConditionTrue, string(v1beta2.AppWrapperResuming), "spec.suspend is false")
	return v.deploy("the components are being created").because("quota is given")
}

// admittedAsAWhole: whoever unsuspended the AppWrapper knew of all its pod sets. Kueue says
// with a podSetInfo what each of them gets; without Kueue there are none at all. Before
// it sees our status, Kueue counts the pod sets of the kinds that it knows itself, and its
// admission covers only those. It takes that back when it sees the others.
func (v *view) admittedAsAWhole() bool {
	informed, whole := false, true
	for i, c := range v.Components {
		informed = informed || c.PodSetInfos > 0
		whole = whole && c.PodSetInfos == len(v.status.ComponentStatus[i].PodSets)
	}
	return whole || !informed
}

// deploy enters Resuming. The names of the components are promised with the move, so
// that whatever comes of their creation can be found and removed.
func (v *view) deploy(message string) Decision {
	const reason = string(v1beta2.AppWrapperResuming)
	v.set(v1beta2.ResourcesDeployed, metav1.ConditionTrue, reason, message)
	v.set(v1beta2.PodsReady, metav1.ConditionFalse, v.notReadyBecause(), "")
	v.set(v1beta2.Unhealthy, metav1.ConditionFalse, reason, "")
	for i := range v.Components {
		v.promise(i)
		v.forgetSuccess(i)
	}
	return v.move(v1beta2.AppWrapperResuming)
}

func (v *view) promise(i int) {
	c, status := v.Components[i], &v.status.ComponentStatus[i]
	status.Name, status.Kind, status.APIVersion = c.Name, c.Kind, c.APIVersion
	v.setComponent(i, v1beta2.ResourcesDeployed, metav1.ConditionUnknown, v1beta2.ReasonComponentCreationInitiated)
}

// unpromised: component i is to be created and the status does not say so. Another
// AppWrapper controller writes that when it comes to the component, not with the move.
// Or it exists, and the status still has an error that came instead of the answer.
func (v *view) unpromised(i int) bool {
	c := v.componentCondition(i, v1beta2.ResourcesDeployed)
	if !v.absent(i) {
		return c != nil && c.Reason == v1beta2.ReasonComponentCreationErrored
	}
	if v.mayBeTriedAgain(i) || v.isRejected(i) {
		return false
	}
	return c == nil || c.Status == metav1.ConditionFalse || v.status.ComponentStatus[i].Name != v.Components[i].Name
}

// resuming creates what does not exist yet, until all of it does. What has done its work
// before the others exist is not created again.
func resuming(v *view) Decision {
	v.rememberSuccess()
	if v.Suspend {
		return v.suspend().because(isSuspended)
	}
	absent := v.where(v.absent)
	if len(absent) == 0 && !v.someAreTerminating() {
		return v.created()
	}
	if unpromised := v.where(v.unpromised); len(unpromised) > 0 {
		for _, i := range unpromised {
			v.promise(i)
		}
		return v.stay()
	}
	if rejected := v.where(v.isRejected); len(rejected) > 0 {
		return v.fail(v1beta2.ReasonCreateFailed, v.refusalMessage(rejected[0])).because("creation refused for good")
	}
	return v.attempt(absent)
}

// attempt creates these components, or pauses after a refusal. It is late only when
// something stands in the way: what was never tried has not failed.
func (v *view) attempt(absent []int) Decision {
	deadline := v.flipped(v1beta2.ResourcesDeployed).Add(v.Policy.AdmissionGrace)
	refused := v.where(v.mayBeTriedAgain)
	late := !v.now.Before(deadline)
	if late && len(refused) > 0 {
		return v.resetOrFail(v1beta2.ReasonCreateFailed, v.refusalMessage(refused[0])).because("creation refused for too long")
	}
	if late && len(absent) == 0 {
		return v.resetOrFail(v1beta2.ReasonCreateFailed, "a component is being deleted and does not go away").because("an old component does not go away")
	}
	if next := v.nextAttempt(); v.now.Before(next) {
		return v.stay().at(earlier(next, deadline), v.now)
	}
	if len(absent) == 0 {
		return v.stay().at(deadline, v.now)
	}
	return v.do(Create, absent).at(deadline, v.now)
}

// absent: component i is still to be created.
func (v *view) absent(i int) bool {
	return !v.Components[i].Exists && !v.finished(i)
}

func (v *view) someAreTerminating() bool {
	return len(v.where(func(i int) bool { return v.Components[i].Terminating && !v.finished(i) })) > 0
}

func (v *view) created() Decision {
	for i := range v.Components {
		v.setComponent(i, v1beta2.ResourcesDeployed, metav1.ConditionTrue, v1beta2.ReasonComponentCreatedSuccessfully)
	}
	return v.move(v1beta2.AppWrapperRunning).because("all components exist")
}

// mayBeTriedAgain: the last attempt to create component i was refused, not for good.
func (v *view) mayBeTriedAgain(i int) bool {
	return v.refused(i, v1beta2.ReasonComponentCreationErrored)
}

// isRejected: no attempt to create component i can do better than the last.
func (v *view) isRejected(i int) bool {
	return v.refused(i, v1beta2.ReasonComponentCreationRejected)
}

// refused: component i does not exist because its creation ended with that reason.
func (v *view) refused(i int, reason string) bool {
	c := v.componentCondition(i, v1beta2.ResourcesDeployed)
	return v.absent(i) && c != nil && c.Reason == reason
}

func (v *view) refusalMessage(i int) string {
	s := v.status.ComponentStatus[i]
	return fmt.Sprintf("%s %q could not be created: %s", s.Kind, s.Name, v.componentCondition(i, v1beta2.ResourcesDeployed).Message)
}

// The pause between two attempts to create a component doubles within these bounds.
const (
	shortestPause = time.Second
	longestPause  = 15 * time.Second
)

// nextAttempt is when to try again after the latest refusal: the pause is as long as
// it has been tried for, so it doubles with every attempt.
func (v *view) nextAttempt() time.Time {
	var latest time.Time
	for _, i := range v.where(v.mayBeTriedAgain) {
		latest = later(latest, v.componentCondition(i, v1beta2.ResourcesDeployed).LastTransitionTime.Time)
	}
	if latest.IsZero() {
		return v.now
	}
	tried := latest.Sub(v.flipped(v1beta2.ResourcesDeployed))
	return latest.Add(min(max(tried, shortestPause), longestPause))
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}
