// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
)

// resetOrFail retries unless the retry limit is reached, an exit code forbids it, or the program would fail again.
func (v *view) resetOrFail(reason, message string) Decision {
	starts := v.startIsLate(reason)
	if v.endedTerminally() || v.noRetryIsLeft(starts) {
		return v.fail(reason, message)
	}
	if same := v.sameFailure(reason); same != "" {
		return v.fail(reason, message+"; "+same).because(CauseSameFailure)
	}
	v.noteFailedNode()
	v.status.Retries++
	if starts {
		v.status.StartupRetries++
	}
	v.status.FailureRetries = v.status.Retries - v.status.StartupRetries
	return v.reset(reason, message)
}

// startIsLate: the attempt ends because components could not be created, or pods did not start in time. Pods that were
// ready and are lost have started.
func (v *view) startIsLate(reason string) bool {
	return reason == v1beta2.ReasonCreateFailed ||
		reason == v1beta2.ReasonInsufficientPodsReady && !v.hasReason(v1beta2.PodsReady, v1beta2.ReasonInsufficientPodsReady)
}

// noRetryIsLeft: starts that are late and all other failures have a budget each, of the same size. Where the CRD of
// another controller drops the number of late starts, they use up the other budget, and both together are the limit.
func (v *view) noRetryIsLeft(starts bool) bool {
	limit := int64(v.Policy.RetryLimit)
	if starts {
		return int64(v.status.StartupRetries) >= limit || int64(v.status.Retries) >= 2*limit
	}
	return int64(v.status.Retries-v.status.StartupRetries) >= limit
}

// reset enters Resetting.
func (v *view) reset(reason, message string) Decision {
	v.set(v1beta2.Unhealthy, metav1.ConditionTrue, reason, message)
	v.clear(v1beta2.PodsReady, string(v1beta2.AppWrapperResetting), "")
	v.beginRemoval()
	return v.move(v1beta2.AppWrapperResetting).announcing(unhealthyEvent(reason, message))
}

// resetting removes everything, pauses, and deploys again. The pause begins when everything is
// gone, which is when ResourcesDeployed turns False, or DeletingResources if finalizers kept
// something.
func resetting(v *view) Decision {
	if v.Suspend {
		return v.suspend().because(CauseSuspended)
	}
	const reason = string(v1beta2.AppWrapperResetting)
	if v.releasable() {
		v.clear(v1beta2.ResourcesDeployed, reason, onlyKept)
	}
	saidGone := v.saysGone()
	if d, gone := v.tearDown(); !gone {
		return v.orGiveUp(d, v1beta2.ResourcesDeployed)
	}
	if v.isTrue(v1beta2.ResourcesDeployed) {
		v.clear(v1beta2.ResourcesDeployed, reason, "the components were removed to be created again")
		return v.pause(v.now.Add(v.Policy.RetryPause))
	}
	gone := later(v.transitionTime(v1beta2.ResourcesDeployed), v.transitionTime(v1beta2.DeletingResources))
	// Even without a pause, the status first says that the components are gone: to be created again is
	// another change, at another time.
	if next := gone.Add(v.Policy.RetryPause); !saidGone || v.now.Before(next) {
		return v.pause(next)
	}
	return v.deploy(v.retryMessage()).because(CauseRetryPauseOver)
}

// pause waits for the next attempt. If Kueue has assigned bad nodes, it is asked for others meanwhile, and suspends the
// AppWrapper. If it does not hear that, the next attempt is made on the same nodes.
func (v *view) pause(next time.Time) Decision {
	if v.NodesAssigned && v.nodesWereLeft() {
		return v.do(Reassign, nil).requeueAt(next, v.now)
	}
	return v.stay().requeueAt(next, v.now)
}

// saysGone: the status says of every component that it is gone, or was never deployed.
func (v *view) saysGone() bool {
	for i := range v.Components {
		if c := v.componentCondition(i, v1beta2.ResourcesDeployed); c != nil && c.Status != metav1.ConditionFalse {
			return false
		}
	}
	return true
}

// retryMessage says how many retries and migrations there were.
func (v *view) retryMessage() string {
	message := fmt.Sprintf("the components are being created again; retry %d", v.status.Retries)
	if v.status.Migrations > 0 {
		message += fmt.Sprintf(", migration %d", v.status.Migrations)
	}
	return message
}
