// SPDX-License-Identifier: Apache-2.0

package runlife

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mlbatch/mlbatch/controller/api/codeflare/v1alpha1"
	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
)

// lives has what a Run does while its AppWrapper is in a phase.
var lives = map[v1beta2.AppWrapperPhase]func(*view) Decision{
	v1beta2.AppWrapperEmpty:      queued,
	v1beta2.AppWrapperSuspended:  queued,
	v1beta2.AppWrapperResuming:   starting,
	v1beta2.AppWrapperRunning:    running,
	v1beta2.AppWrapperResetting:  retrying,
	v1beta2.AppWrapperSuspending: preempted,
}

// living: the phase of the AppWrapper tells that of the Run. A phase that this version does not
// know changes nothing.
func living(v *view) (Decision, bool) {
	aw := v.mine()
	if aw == nil {
		return Decision{}, false
	}
	d := v.stay()
	if live, known := lives[aw.Status.Phase]; known {
		d = live(v)
	}
	if d.NeedsPods {
		return d, true
	}
	if v.starts() {
		d = d.announcing(normal(reasonStarted, actionFollow, "all pods are ready"))
	}
	if at, limited := v.deadline(); limited {
		d = d.requeueAt(at, v.now)
	}
	if at, ended := v.brokerEnded(); ended {
		d = d.requeueAt(at.Add(WorkersPause), v.now)
	}
	return d, true
}

func queued(v *view) Decision {
	v.clear(v1alpha1.PodsReady, Preempted)
	if c := v.ofAppWrapper(v1beta2.Deactivated); isTrue(c) {
		v.set(v1alpha1.QuotaReserved, metav1.ConditionFalse, Deactivated, c.Message)
		return v.enter(v1alpha1.RunQueued, "it does not start: "+c.Message)
	}
	if v.status.StartTime != nil {
		v.set(v1alpha1.QuotaReserved, metav1.ConditionFalse, Preempted, "")
		return v.enter(v1alpha1.RunQueued, "its quota was taken away, and it waits for quota")
	}
	v.set(v1alpha1.QuotaReserved, metav1.ConditionFalse, WaitsForQuota, "")
	return v.enter(v1alpha1.RunQueued, "it waits for quota")
}

func starting(v *view) Decision {
	v.set(v1alpha1.QuotaReserved, metav1.ConditionTrue, Admitted, "")
	v.set(v1alpha1.PodsReady, metav1.ConditionFalse, PodsStarting, "")
	return v.enter(v1alpha1.RunStarting, "it has quota, and its pods start")
}

func running(v *view) Decision {
	if isTrue(v.ofAppWrapper(v1beta2.Unhealthy)) {
		return retrying(v)
	}
	if !isTrue(v.ofAppWrapper(v1beta2.PodsReady)) {
		return starting(v)
	}
	v.set(v1alpha1.QuotaReserved, metav1.ConditionTrue, Admitted, "")
	v.set(v1alpha1.PodsReady, metav1.ConditionTrue, AllPodsReady, "")
	return v.enter(v1alpha1.RunRunning, "all pods are ready")
}

// retrying has no words of the AppWrapper, which count pods.
func retrying(v *view) Decision {
	reason := AppWrapperFailed
	if c := v.ofAppWrapper(v1beta2.Unhealthy); isTrue(c) {
		reason = c.Reason
	}
	if v.Run.Status.Phase != v1alpha1.RunRetrying {
		if v.Pods == nil {
			return Decision{NeedsPods: true}
		}
		v.rememberFailure()
	}
	v.set(v1alpha1.QuotaReserved, metav1.ConditionTrue, Admitted, "")
	v.set(v1alpha1.PodsReady, metav1.ConditionFalse, reason, "")
	return v.enter(v1alpha1.RunRetrying, "something has failed, and it is tried again if retries are left: "+reason)
}

func preempted(v *view) Decision {
	v.set(v1alpha1.PodsReady, metav1.ConditionFalse, Preempted, "")
	return v.enter(v1alpha1.RunPreempted, "its quota is taken away, and its pods end")
}
