// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/internal/kinds"
)

// crashLoop: all pods are there whose turn has come, and the programs of some crash again and again, as their phase
// does not show. Their kubelets are what tries again, so nothing is reset: an operator that counts these restarts fails
// the component, and others may be what the program waits for. After the failure grace the AppWrapper says that it is
// not well.
func crashLoop(v *view) (Decision, bool) {
	s := v.podSets()
	if _, c := s.total(); c.crashing == 0 || s.waitingForCrashes().lacking(podCounts.begun) > 0 {
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

// waitingForCrashes expects no more pods where some of their component crash and the others come one by one.
func (s podSets) waitingForCrashes() podSets {
	crashes := map[int]bool{}
	for _, set := range s.sets {
		crashes[set.component] = crashes[set.component] || set.crashing > 0
	}
	waiting := podSets{others: s.others}
	for _, set := range s.sets {
		if set.turn == kinds.OneByOne && (crashes[set.component] || s.others[set.component].crashing > 0) {
			set.expected = min(set.expected, set.present())
		}
		waiting.sets = append(waiting.sets, set)
	}
	return waiting
}

// forgetCrashes: a program that has run for the failure grace since it crashed runs. An init container may fail while
// it waits for another pod of its component that prepares, and after its grace it is late, as one that never fails.
func (v *view) forgetCrashes() {
	if !slices.ContainsFunc(v.Pods, func(p Pod) bool { return p.CrashLoop != "" || !p.InitSince.IsZero() }) {
		return
	}
	pods := slices.Clone(v.Pods) // the snapshot's stay as they are
	for i, p := range pods {
		switch {
		case p.hasPrepared(v.now, v.Policy.InitGrace):
			pods[i].CrashLoop, pods[i].InitSince, pods[i].InitEnded, pods[i].RunsSince = "", time.Time{}, time.Time{}, time.Time{}
		case !p.RunsSince.IsZero() && !v.now.Before(p.RunsSince.Add(v.Policy.FailureGrace)):
			pods[i].CrashLoop = ""
		}
	}
	v.Pods = pods
	v.forgetThoseThatWait()
}

func (v *view) forgetThoseThatWait() {
	prepares := map[int]bool{}
	for _, p := range v.Pods {
		prepares[p.Component] = prepares[p.Component] || p.CrashLoop == "" && !v.prepares(p).Before(v.now)
	}
	for i, p := range v.Pods {
		if p.Phase == corev1.PodPending && prepares[p.Component] {
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

// untilItRuns adds to a decision to stay when a program will have run for long enough, and when an init container will
// have taken too long.
func (v *view) untilItRuns(d Decision) Decision {
	for _, p := range v.Pods {
		if p.CrashLoop != "" && !p.RunsSince.IsZero() {
			d = v.untilAtMost(d, p.RunsSince.Add(v.Policy.FailureGrace))
		}
		if p.Phase == corev1.PodPending && !p.InitSince.IsZero() {
			d = v.untilAtMost(d, v.prepares(p))
		}
	}
	return d
}
