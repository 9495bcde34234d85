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
)

// surplus is by how much pods exceed the pod sets, which are what Kueue counts. It is the last
// line of defence: admission refuses what is known to add pods.
type surplus struct {
	excess []string  // in numbers; empty if there is none
	since  time.Time // when the first pod started that was too much
}

func (s *surplus) add(excess string, since time.Time) {
	if len(s.excess) == 0 || since.Before(s.since) {
		s.since = since
	}
	s.excess = append(s.excess, excess)
}

// surplus compares numbers of pods and of devices. That pods start tells since when, so no
// memory is needed. The CPU and memory of a pod do not count, because side-cars are injected.
func (v *view) surplus() surplus {
	var s surplus
	pods := v.podsOnNodes()
	if declared := v.declaredPods(); len(pods) > declared {
		s.add(fmt.Sprintf("%d pods instead of %d", len(pods), declared), pods[declared].Started)
	}
	for _, device := range slices.Sorted(maps.Keys(v.Devices)) {
		used, exceeded := int64(0), -1
		for i, p := range pods {
			used += p.Devices[device]
			if used > v.Devices[device] && exceeded < 0 {
				exceeded = i
			}
		}
		if exceeded >= 0 {
			s.add(fmt.Sprintf("%d %s instead of %d", used, device, v.Devices[device]), pods[exceeded].Started)
		}
	}
	return s
}

// podsOnNodes are the pods that use a node, the oldest first. Those that are being deleted do
// not count: their replacements may run already.
func (v *view) podsOnNodes() []Pod {
	var pods []Pod
	for _, p := range v.Pods {
		if p.alive() && !p.Terminating && !p.Started.IsZero() {
			pods = append(pods, p)
		}
	}
	slices.SortStableFunc(pods, func(a, b Pod) int { return a.Started.Compare(b.Started) })
	return pods
}

// declaredPods counts finished components as well, because their quota is still reserved.
func (v *view) declaredPods() int {
	n := 0
	for _, s := range v.status.ComponentStatus {
		for _, p := range s.PodSets {
			n += int(p.Count())
		}
	}
	return n
}

func (v *view) surplusDeadline(s surplus) time.Time {
	return earlier(s.since, v.now).Add(v.Policy.SurplusGrace)
}

// surplusPods: pods exceed the pod sets, and no rolling update or the like explains it any more.
// If they may stay, one event says so.
func surplusPods(v *view) (Decision, bool) {
	s := v.surplus()
	if len(s.excess) == 0 {
		v.clear(v1beta2.SurplusPods, v1beta2.ReasonNoSurplusPods, "")
		return Decision{}, false
	}
	if v.now.Before(v.surplusDeadline(s)) {
		return Decision{}, false
	}
	message := "pods with the AppWrapper's label exceed its pod sets: " + strings.Join(s.excess, ", ") +
		". Remove what adds them, or submit the AppWrapper again with larger pod sets"
	known := v.isTrue(v1beta2.SurplusPods)
	v.set(v1beta2.SurplusPods, metav1.ConditionTrue, v1beta2.ReasonSurplusPods, message)
	if v.Policy.ResetSurplus {
		return v.resetOrFail(v1beta2.ReasonSurplusPods, message), true
	}
	return v.stay().announcing(unhealthyEvent(v1beta2.ReasonSurplusPods, message)), !known
}

// untilSurplus adds to a decision to stay that a surplus has to be looked at when its grace ends.
func (v *view) untilSurplus(d Decision) Decision {
	s := v.surplus()
	if len(s.excess) == 0 {
		return d
	}
	return v.untilAtMost(d, v.surplusDeadline(s))
}

// untilAtMost adds to a decision to stay Running that there is a deadline.
func (v *view) untilAtMost(d Decision, deadline time.Time) Decision {
	if d.Status.Phase != v1beta2.AppWrapperRunning {
		return d
	}
	if d.Requeue > 0 {
		deadline = earlier(deadline, v.now.Add(d.Requeue))
	}
	return d.requeueAt(deadline, v.now)
}
