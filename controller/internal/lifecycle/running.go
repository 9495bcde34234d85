// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/internal/kinds"
)

// checks is the specification of Running: the first that applies decides. What a component
// says about itself comes before the state of its pods.
var checks = []struct {
	cause Cause
	check func(*view) (d Decision, applies bool)
}{
	{CauseAllSucceeded, allSucceeded},          // success counts even while the workload is being suspended
	{CauseSuspended, suspendedByKueue},         // nothing below matters once the quota is wanted back
	{CauseComponentMissing, componentMissing},  // somebody deleted a component: fail, without a retry
	{CauseComponentFailed, componentFailed},    // a component reports failure: retry
	{CauseNodeUnhealthy, podsOnUnhealthyNodes}, // a pod uses an unhealthy resource: migrate, which is no retry
	{CauseSurplusPods, surplusPods},            // more pods than there is quota for: retry after a grace
	{CauseNoProgress, noProgress},              // a pod hangs, by a sign that its author chose: retry
	{CausePodsFailed, podsFailed},              // failed pods are not replaced: retry after a grace
	{CauseIdle, idle},                          // no pod uses its devices: tell, and give the quota back after a grace
	{CausePodsReady, podsReady},                // all is well: wait for a change
	{CauseCrashLoop, crashLoop},                // the program of a pod crashes again and again: tell
	{CauseReadinessLate, readinessIsLate},      // too few pods: retry, or migrate again, after a grace
}

func running(v *view) Decision {
	v.rememberSuccess()
	v.rememberGone()
	v.noticeWork()
	for _, c := range checks {
		if d, applies := c.check(v); applies {
			return v.tellOfHolding(v.untilMigration(v.untilSurplus(v.untilStuck(v.untilIdle(d.orBecause(c.cause))))))
		}
	}
	return v.stay()
}

// run enters Running. If pods are ready already, the same write says so.
func (v *view) run() Decision {
	for i := range v.Components {
		v.setComponent(i, v1beta2.ResourcesDeployed, metav1.ConditionTrue, v1beta2.ReasonComponentCreatedSuccessfully)
		v.forget(i, v1beta2.ComponentRefused)
		v.forget(i, v1beta2.ComponentUnanswered)
	}
	podsReady(v)
	return v.move(v1beta2.AppWrapperRunning).because(CauseComponentsExist)
}

// rememberSuccess records which components have succeeded, because a finished resource may
// be cleaned up before the others finish.
func (v *view) rememberSuccess() {
	for i, c := range v.Components {
		if c.Verdict == kinds.Succeeded && !v.finished(i) {
			v.setComponent(i, v1beta2.ComponentSucceeded, metav1.ConditionTrue, v1beta2.ReasonComponentSucceeded)
		}
	}
}

// allSucceeded: the work is done. The move gives the quota back, so it waits for pods that
// still run. They have some time to end by themselves. After that, or as soon as
// Kueue wants the quota back, their components are deleted.
func allSucceeded(v *view) (Decision, bool) {
	if !v.isTrue(v1beta2.DeletingResources) && !v.done() {
		return Decision{}, false
	}
	if !v.alive() {
		return v.succeed(), true
	}
	deadline := v.podsEndBy()
	if !v.isTrue(v1beta2.DeletingResources) && !v.Suspend && v.now.Before(deadline) {
		return v.stay().requeueAt(deadline, v.now), true
	}
	d := v.remove(v.where(v.outlivedByPods))
	if d.Effect == ForceDelete {
		d = v.remove(v.where(v.existsAndMakesPods)) // force deletes all pods, so whatever replaces them goes first
	}
	return d, true
}

// done tells whether every component has finished. Components that report their end must
// have reported success. Of the others, as many pods as expected must have succeeded, and
// none may be pending or running; failed pods were replaced then. Where an operator replaces
// all pods that end, none have the last word. Without a report and without an expected pod,
// nothing is done.
func (v *view) done() bool {
	reported := false
	for i, c := range v.Components {
		if (c.ReportsEnd || v.replacesPods(i)) && !v.finished(i) {
			return false
		}
		reported = reported || c.ReportsEnd
	}
	rest := v.podSets()
	expected, c := rest.total()
	if expected == 0 {
		return reported
	}
	return rest.lacking(podCounts.ended) == 0 && c.alive() == 0
}

// podsEndBy is until when pods may outlive success: for the failure grace, or as long as those may take that are being
// deleted already, because a component ends them before it says that it is complete.
func (v *view) podsEndBy() time.Time {
	success := v.lastSuccess()
	var last time.Time
	for _, p := range v.Pods {
		if p.Terminating && p.alive() {
			last = later(last, p.EndsBy)
		}
	}
	return later(success.Add(v.Policy.FailureGrace), earlier(last, success.Add(v.Policy.ForcefulDeletionGrace)))
}

func (v *view) lastSuccess() time.Time {
	var last time.Time
	for i := range v.Components {
		if c := v.componentCondition(i, v1beta2.ComponentSucceeded); c != nil {
			last = later(last, c.LastTransitionTime.Time)
		}
	}
	return last
}

// outlivedByPods: component i has succeeded, and pods that are or may be its own still run.
func (v *view) outlivedByPods(i int) bool {
	if !v.finished(i) || !v.Components[i].Exists {
		return false
	}
	for _, p := range v.Pods {
		if p.alive() && (p.Component == i || p.Component == UnknownComponent) {
			return true
		}
	}
	return false
}

func suspendedByKueue(v *view) (Decision, bool) {
	if !v.Suspend {
		return Decision{}, false
	}
	return v.suspend(), true
}

func componentMissing(v *view) (Decision, bool) {
	missing := v.where(v.missing)
	if len(missing) == 0 {
		return Decision{}, false
	}
	names := make([]string, len(missing))
	for n, i := range missing {
		names[n] = fmt.Sprintf("%s %q", v.status.ComponentStatus[i].Kind, v.status.ComponentStatus[i].Name)
	}
	return v.fail(v1beta2.ReasonMissingComponent, fmt.Sprintf("%d of %d components found; missing: %s",
		len(v.Components)-len(missing), len(v.Components), strings.Join(names, ", "))), true
}

// missing: component i was deployed, has not succeeded, and is gone or being deleted. One
// that has failed and cleans itself up is not missing but failed.
func (v *view) missing(i int) bool {
	c := v.Components[i]
	present := c.Exists && !c.Terminating
	return !present && c.Verdict != kinds.Failed && !v.finished(i) && v.componentIs(i, v1beta2.ResourcesDeployed, metav1.ConditionTrue)
}

func componentFailed(v *view) (Decision, bool) {
	failed := v.where(func(i int) bool { return v.Components[i].Verdict == kinds.Failed })
	n := len(failed)
	if n == 0 {
		return Decision{}, false
	}
	if i := slices.IndexFunc(failed, func(i int) bool { return v.Components[i].Final != "" }); i >= 0 {
		return v.failForGood(failed[i], fmt.Sprintf("%d of %d components failed", n, len(v.Components))), true
	}
	return v.leaveOrReset(v.nodesToBlame(), v1beta2.ReasonFailedComponent, fmt.Sprintf("%d of %d components failed", n, len(v.Components))), true
}

// failForGood: component i would fail again, so there is no retry: its own deadline or policy has ended it, or it is
// not valid.
func (v *view) failForGood(i int, message string) Decision {
	s := v.status.ComponentStatus[i]
	message = fmt.Sprintf("%s; there is no retry, because %s %q ended with %s", message, s.Kind, s.Name, v.Components[i].Final)
	return v.fail(v1beta2.ReasonFailedComponent, v.tellingWhatFailed(message))
}

// podsFailed: pods have failed and were not replaced. While their owner replaces them in
// time, as a Job with a backoffLimit does, nothing is wrong. Whether a replacement runs yet
// is for the checks of readiness.
func podsFailed(v *view) (Decision, bool) {
	s := v.podSets()
	if !s.failed() || s.complete() {
		return Decision{}, false
	}
	v.set(v1beta2.Unhealthy, metav1.ConditionTrue, v1beta2.ReasonFoundFailedPods, "")
	v.clear(v1beta2.PodsReady, v1beta2.ReasonInsufficientPodsReady, s.String())
	began := later(v.transitionTime(v1beta2.Unhealthy), v.transitionTime(v1beta2.ResourcesDeployed))
	if deadline := later(began.Add(v.Policy.FailureGrace), v.replacedBy(s)); v.now.Before(deadline) {
		return v.stay().requeueAt(deadline, v.now), true
	}
	return v.leaveOrReset(v.nodesToBlame(), v1beta2.ReasonFoundFailedPods, s.String()), true
}

// podsReady keeps the message of a condition that is True already, so that pods that finish
// one by one cause no writes.
func podsReady(v *view) (Decision, bool) {
	s := v.podSets()
	if !s.ready() {
		return Decision{}, false
	}
	if !v.isTrue(v1beta2.PodsReady) || v.isTrue(v1beta2.Unhealthy) {
		v.doubtFailedNode()
		_, c := s.total()
		v.set(v1beta2.Unhealthy, metav1.ConditionFalse, v1beta2.ReasonFoundNoFailedPods, "")
		v.set(v1beta2.PodsReady, metav1.ConditionTrue, v1beta2.ReasonSufficientPodsReady,
			fmt.Sprintf("%d pods running; %d pods succeeded", c.running, c.succeeded))
	}
	return s.nextTurn(v, v.stay()), true
}

func readinessIsLate(v *view) (Decision, bool) {
	s := v.podSets()
	v.clear(v1beta2.PodsReady, v1beta2.ReasonInsufficientPodsReady, s.String())
	if deadline := v.readinessDeadline(s); v.now.Before(deadline) {
		v.clear(v1beta2.Unhealthy, v1beta2.ReasonFoundNoFailedPods, "")
		return v.stay().requeueAt(v.nextLook(deadline), v.now), true
	}
	_, c := s.total()
	v.forgetIfThereIsNoRoom(c)
	silent, stragglers := v.nodesThatStartNothing()
	v.avoid(stragglers)
	v.avoid(silent)
	if v.lateAfterMigration() {
		return v.migrate(v1beta2.ReasonInsufficientPodsReady + " after unhealthy nodes were left: " + s.String()), true
	}
	if v.doNotFitTheirNodes(c) {
		return v.migrate(v1beta2.ReasonInsufficientPodsReady + " on the nodes that Kueue has assigned: " + s.String()), true
	}
	maps.Copy(silent, v.nodesToBlame())
	return v.leaveOrReset(silent, v1beta2.ReasonInsufficientPodsReady, s.String()), true
}

// nextLook is before the deadline if the warmup grace is shorter than the admission grace:
// that the last pods were created, which shortens the deadline, causes no look.
func (v *view) nextLook(deadline time.Time) time.Time {
	warmup := v.created().Add(v.Policy.WarmupGrace)
	if v.now.Before(warmup) {
		return earlier(warmup, deadline)
	}
	return deadline
}

// created is when all components of this attempt were first seen. That may be long after the
// attempt began: no controller may have run, or the AppWrapper waited for its turn.
func (v *view) created() time.Time {
	last := v.transitionTime(v1beta2.ResourcesDeployed)
	for i := range v.Components {
		if v.componentIs(i, v1beta2.ResourcesDeployed, metav1.ConditionTrue) {
			last = later(last, v.componentCondition(i, v1beta2.ResourcesDeployed).LastTransitionTime.Time)
		}
	}
	return last
}

// readinessDeadline is when enough pods must run. From the creation, pods have the
// admission grace to be created and the warmup grace to start, unless they come one by one. Pods that were ready and
// are lost have the failure grace to be replaced.
func (v *view) readinessDeadline(s podSets) time.Time {
	grace := v.Policy.AdmissionGrace
	if s.complete() {
		grace = v.Policy.WarmupGrace
	}
	deadline := v.created().Add(grace)
	if s.oneByOneOnly() {
		deadline = later(deadline, v.lastProgress().Add(v.Policy.WarmupGrace))
	}
	if v.hasReason(v1beta2.PodsReady, v1beta2.ReasonInsufficientPodsReady) {
		deadline = later(deadline, v.replacementDeadline(v.transitionTime(v1beta2.PodsReady)))
	}
	return later(later(deadline, v.replacedBy(s)), v.preparedBy(s))
}
