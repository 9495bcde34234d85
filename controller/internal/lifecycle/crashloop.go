// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
)

// crashLoop: all pods are there, and the programs of some crash again and again, as their phase does not show. Their
// kubelets are what tries again, so nothing is reset: an operator that counts these restarts fails the component, and
// others may be what the program waits for. After the failure grace the AppWrapper says that it is not well.
func crashLoop(v *view) (Decision, bool) {
	s := v.podSets()
	if s.lacking(podCounts.started) > 0 {
		return Decision{}, false
	}
	v.clear(v1beta2.PodsReady, v1beta2.ReasonInsufficientPodsReady, s.String())
	first, since := v.firstCrashLoop()
	if v.hasReason(v1beta2.PodsReady, v1beta2.ReasonInsufficientPodsReady) {
		since = later(since, v.transitionTime(v1beta2.PodsReady))
	}
	d := v.untilItRuns(v.stay())
	if deadline := since.Add(v.Policy.FailureGrace); v.now.Before(deadline) {
		return v.untilAtMost(d, deadline), true
	}
	if v.isTrue(v1beta2.Unhealthy) && v.hasReason(v1beta2.Unhealthy, v1beta2.ReasonCrashLoop) {
		return d, true
	}
	message := fmt.Sprintf("pod %s: container %s crashes, and its kubelet starts it again and again", first.Name, first.CrashLoop)
	v.set(v1beta2.Unhealthy, metav1.ConditionTrue, v1beta2.ReasonCrashLoop, message)
	d.Status = v.status
	return d.announcing(unhealthyEvent(v1beta2.ReasonCrashLoop, message)), true
}

// forgetCrashes: a program that has run for the failure grace since it crashed runs.
func (v *view) forgetCrashes() {
	runs := func(p Pod) bool {
		return !p.RunsSince.IsZero() && !v.now.Before(p.RunsSince.Add(v.Policy.FailureGrace))
	}
	if !slices.ContainsFunc(v.Pods, runs) {
		return
	}
	v.Pods = slices.Clone(v.Pods) // the snapshot's stay as they are
	for i := range v.Pods {
		if runs(v.Pods[i]) {
			v.Pods[i].CrashLoop = ""
		}
	}
}

// firstCrashLoop is the pod that started first of those whose programs crash, and when that was.
func (v *view) firstCrashLoop() (first Pod, since time.Time) {
	for _, p := range v.Pods {
		started := earlier(p.Started, v.now)
		if p.CrashLoop != "" && (first.CrashLoop == "" || started.Before(since)) {
			first, since = p, started
		}
	}
	return first, later(since, v.created())
}

// untilItRuns adds to a decision to stay when a program will have run for long enough.
func (v *view) untilItRuns(d Decision) Decision {
	for _, p := range v.Pods {
		if p.CrashLoop != "" && !p.RunsSince.IsZero() {
			d = v.untilAtMost(d, p.RunsSince.Add(v.Policy.FailureGrace))
		}
	}
	return d
}
