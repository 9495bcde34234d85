// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
)

// isSuspended is the cause that three phases share.
const isSuspended = "suspended by Kueue"

const nothingDeployed = "no resources are deployed"

// resetOrFail starts another attempt if one is left and of use.
func (v *view) resetOrFail(reason, message string) Decision {
	if v.endedTerminally() || v.status.Retries >= v.Policy.RetryLimit {
		return v.fail(reason, message).because(", and no retry is left or of use")
	}
	v.status.Retries++
	return v.reset(reason, message)
}

// reset removes what is deployed, to create it again.
func (v *view) reset(reason, message string) Decision {
	v.set(v1beta2.Unhealthy, metav1.ConditionTrue, reason, message)
	v.lower(v1beta2.PodsReady, string(v1beta2.AppWrapperResetting), "")
	v.beginRemoval()
	return v.move(v1beta2.AppWrapperResetting).announcing(unhealthyEvent(reason, message))
}

func (v *view) fail(reason, message string) Decision {
	v.set(v1beta2.Unhealthy, metav1.ConditionTrue, reason, message)
	v.lower(v1beta2.PodsReady, string(v1beta2.AppWrapperFailed), "")
	return v.move(v1beta2.AppWrapperFailed).announcing(unhealthyEvent(reason, message))
}

func (v *view) suspend() Decision {
	from := v.status.Phase
	v.beginRemoval()
	return v.move(v1beta2.AppWrapperSuspending).announcing(suspendingEvent(from))
}

// resetting removes everything, pauses, and deploys again. The pause counts from when
// the last pod was gone, which is when ResourcesDeployed turns False.
func resetting(v *view) Decision {
	if v.Suspend {
		return v.suspend().because(isSuspended)
	}
	if d, gone := v.tearDown(); !gone {
		return d
	}
	const reason = string(v1beta2.AppWrapperResetting)
	if v.isTrue(v1beta2.ResourcesDeployed) {
		v.lower(v1beta2.ResourcesDeployed, reason, "the components were removed to be created again")
		return v.stay().at(v.now.Add(v.Policy.RetryPause), v.now)
	}
	if next := v.flipped(v1beta2.ResourcesDeployed).Add(v.Policy.RetryPause); v.now.Before(next) {
		return v.stay().at(next, v.now)
	}
	return v.deploy(v.attempts()).because("the retry pause is over")
}

// attempts says how often it was tried again, and why.
func (v *view) attempts() string {
	message := fmt.Sprintf("the components are being created again; retry %d", v.status.Retries)
	if v.status.Migrations > 0 {
		message += fmt.Sprintf(", migration %d", v.status.Migrations)
	}
	return message
}

// suspending does not heed spec.suspend: what was begun is completed.
func suspending(v *view) Decision {
	if d, gone := v.tearDown(); !gone {
		return d
	}
	const reason = string(v1beta2.AppWrapperSuspended)
	v.set(v1beta2.ResourcesDeployed, metav1.ConditionFalse, reason, "spec.suspend is true")
	v.set(v1beta2.QuotaReserved, metav1.ConditionFalse, reason, "spec.suspend is true")
	v.lower(v1beta2.PodsReady, reason, "")
	v.set(v1beta2.Unhealthy, metav1.ConditionFalse, reason, "")
	return v.move(v1beta2.AppWrapperSuspended).because("everything is gone")
}

// failed keeps the components for their author to look at, if that was asked for, and
// then removes them. Quota is held until then, unless Kueue wants it back.
func failed(v *view) Decision {
	began, hold := v.phaseBegan(), v.Policy.DeletionOnFailureHold
	if v.keeping() && !v.Suspend {
		if until := began.Add(hold); v.now.Before(until) {
			// As old as the phase: were it younger, the phase would seem to begin with it.
			setCondition(&v.status.Conditions, v1beta2.DeletingResources, metav1.ConditionFalse, v1beta2.ReasonDeletionPaused,
				fmt.Sprintf("%s is %s", v1beta2.DeletionOnFailureGracePeriodAnnotation, hold), began)
			return v.stay().at(until, v.now)
		}
	}
	if d, gone := v.tearDown(); !gone {
		return d
	}
	message := nothingDeployed
	if v.Suspend {
		message = "the components were removed because spec.suspend is true"
	}
	v.lower(v1beta2.PodsReady, string(v1beta2.AppWrapperFailed), "")
	v.lower(v1beta2.ResourcesDeployed, string(v1beta2.AppWrapperFailed), message)
	v.lower(v1beta2.QuotaReserved, string(v1beta2.AppWrapperFailed), nothingDeployed)
	return v.stay()
}

// succeeded keeps the finished components, and with them their logs, for a while, unless
// they go by themselves.
func succeeded(v *view) Decision {
	if v.keeping() && !v.remains() {
		v.nothingIsLeft()
		return v.stay()
	}
	if v.keeping() {
		if until := v.phaseBegan().Add(v.Policy.SuccessTTL); v.now.Before(until) {
			return v.stay().at(until, v.now)
		}
	}
	if d, gone := v.tearDown(); !gone {
		return d
	}
	v.lower(v1beta2.ResourcesDeployed, string(v1beta2.AppWrapperSucceeded),
		fmt.Sprintf("the components were removed %s after success", v.Policy.SuccessTTL))
	return v.stay()
}

// keeping: there is something to keep, and its removal has not begun. Without the second
// half, the beginning of a removal would restart the time for which to keep it.
func (v *view) keeping() bool {
	return v.isTrue(v1beta2.ResourcesDeployed) && !v.isTrue(v1beta2.DeletingResources)
}

// terminating is an AppWrapper with a deletionTimestamp, in whatever phase. It is let
// go when nothing of it is left, whatever the deletion was to spare (--cascade=orphan):
// what lived on would use what others get the quota for. Without our finalizer, nothing
// was ever deployed.
func terminating(v *view) Decision {
	const phase = v1beta2.AppWrapperTerminating
	if !v.Guarded {
		return v.stay()
	}
	if v.status.Phase != phase && (v.isTrue(v1beta2.ResourcesDeployed) || v.remains()) {
		v.beginRemoval()
		return v.move(phase).because("deleted")
	}
	if d, gone := v.tearDown(); !gone {
		return d
	}
	if v.Alone {
		return Decision{Status: v.Status, Effect: Release}
	}
	v.lower(v1beta2.ResourcesDeployed, string(phase), nothingDeployed)
	v.lower(v1beta2.QuotaReserved, string(phase), nothingDeployed)
	return v.do(Release, nil)
}

// remains: a component or a pod is left, in whatever state.
func (v *view) remains() bool {
	return len(v.Pods) > 0 || len(v.existing()) > 0
}

func (v *view) existing() []int {
	return v.where(func(i int) bool { return v.Components[i].Exists })
}

// tearDown removes everything. It says how to go on, or that nothing is left. The
// latter is believed only of a snapshot that was taken after DeletingResources was
// saved as True: what was decided before that save creates nothing any more, because
// the actor makes sure of the resourceVersion.
func (v *view) tearDown() (d Decision, gone bool) {
	unconfirmed := v.isTrue(v1beta2.ResourcesDeployed) && !v.isTrue(v1beta2.DeletingResources)
	if unconfirmed || v.remains() {
		return v.remove(v.existing()), false
	}
	v.lower(v1beta2.DeletingResources, v1beta2.ReasonDeletionComplete, "")
	v.lower(v1beta2.OnUnhealthyNodes, v1beta2.ReasonNodesHealthy, "")
	v.markDeleted()
	return Decision{}, true
}

func (v *view) markDeleted() {
	for i := range v.Components {
		if v.componentCondition(i, v1beta2.ResourcesDeployed) != nil {
			v.setComponent(i, v1beta2.ResourcesDeployed, metav1.ConditionFalse, v1beta2.ReasonComponentDeleted)
		}
	}
}

// beginRemoval starts the time after which force is used. A removal that has begun in
// another phase goes on, and so does its time.
func (v *view) beginRemoval() {
	if !v.isTrue(v1beta2.DeletingResources) {
		v.set(v1beta2.DeletingResources, metav1.ConditionTrue, v1beta2.ReasonDeletionInitiated, "")
	}
}

// held says what keeps a removal from its end though force is used: permissions that are
// missing, and the finalizers of others, which are respected. It says nothing of how many
// pods are left, for that would have to be written with each that goes.
func (v *view) held() string {
	var held []string
	for i, c := range v.Components {
		if c.Unseen {
			held = append(held, fmt.Sprintf("the controller lacks the permission to get %s %q", c.Kind, v.status.ComponentStatus[i].Name))
		}
		if c.Exists && c.Terminating && len(c.Finalizers) > 0 {
			held = append(held, fmt.Sprintf("%s %q is kept by its finalizers %s", c.Kind, v.status.ComponentStatus[i].Name, strings.Join(c.Finalizers, ", ")))
		}
	}
	var ofPods []string
	for _, p := range v.Pods {
		if p.Terminating {
			ofPods = append(ofPods, p.Finalizers...)
		}
	}
	if len(ofPods) > 0 {
		slices.Sort(ofPods)
		held = append(held, "pods are kept by their finalizers "+strings.Join(slices.Compact(ofPods), ", "))
	}
	return strings.Join(held, "; ")
}

// remove deletes these components, or uses force if they have had their time. Force
// comes only after every one of them that makes pods was told to go: the owner of a pod
// that is not being deleted itself would replace the pod.
func (v *view) remove(targets []int) Decision {
	v.beginRemoval()
	deadline := v.flipped(v1beta2.DeletingResources).Add(v.Policy.ForcefulDeletionGrace)
	late := !v.now.Before(deadline)
	if late || slices.ContainsFunc(v.Components, func(c Component) bool { return c.Unseen }) {
		v.set(v1beta2.DeletingResources, metav1.ConditionTrue, v1beta2.ReasonDeletionInitiated, v.held())
	}
	undeleted := make([]int, 0, len(targets))
	for _, i := range targets {
		if !v.Components[i].Terminating {
			undeleted = append(undeleted, i)
		}
	}
	if late && len(v.Pods) > 0 && !slices.ContainsFunc(undeleted, v.makesPods) {
		return v.do(ForceDelete, targets)
	}
	if len(undeleted) > 0 {
		return v.do(Delete, undeleted).at(deadline, v.now)
	}
	if !late {
		return v.stay().at(deadline, v.now)
	}
	return v.do(ForceDelete, targets)
}

func (v *view) existsAndMakesPods(i int) bool {
	return v.Components[i].Exists && v.makesPods(i)
}

func (v *view) makesPods(i int) bool {
	return slices.ContainsFunc(v.status.ComponentStatus[i].PodSets, func(p v1beta2.AppWrapperPodSet) bool { return p.Count() > 0 })
}
