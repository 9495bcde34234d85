// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
)

// noProgress: a pod makes no progress, and so do those that wait for it. Only its author can say how one
// sees that, and after how long: with a readiness probe and an annotation. The pods of a gang wait for
// each other, so which is to blame is not known, and no node is blamed.
func noProgress(v *view) (Decision, bool) {
	stuck := v.stuck()
	if len(stuck) == 0 || v.now.Before(v.stuckDeadline(stuck)) {
		v.clear(v1beta2.ComputesWithoutProgress, v1beta2.ReasonProgressMade, "")
		return Decision{}, false
	}
	message := v.describeStuck(stuck)
	if v.heldBack() {
		v.noteHolding(message)
		return Decision{}, false
	}
	switch v.Activity {
	case ActivityRests:
		message += "; no pod computes"
	case ActivityUnknown:
		message += "; whether a pod computes is unknown"
	}
	v.clear(v1beta2.ComputesWithoutProgress, v1beta2.ReasonNoProgress, message)
	return v.resetOrFail(v1beta2.ReasonNoProgress, message).confirmed(), true
}

func (v *view) describeStuck(stuck []Pod) string {
	first := stuck[0]
	for _, p := range stuck {
		if p.NotReadySince.Before(first.NotReadySince) {
			first = p
		}
	}
	return fmt.Sprintf("pod %s has not been ready for %s, and is the first of %d such pods", first.Name, v.Policy.NoProgressGrace, len(stuck))
}

// noteHolding keeps the message of a condition that is True already, so that the pods of a gang that become
// silent one by one cause no writes.
func (v *view) noteHolding(message string) {
	if v.Activity == ActivityComputes && !v.isTrue(v1beta2.ComputesWithoutProgress) {
		v.set(v1beta2.ComputesWithoutProgress, metav1.ConditionTrue, v1beta2.ReasonDevicesCompute, message+"; it is not reset, because devices compute")
	}
}

// stuck are the pods that run and are not ready, once enough pods run: until then they wait for the others,
// which have graces of their own. Those that have to leave their node are not ready because of that, and
// those of a component that has succeeded have done their work.
func (v *view) stuck() []Pod {
	if v.Policy.NoProgressGrace <= 0 || !v.isTrue(v1beta2.PodsReady) {
		return nil
	}
	var stuck []Pod
	for _, p := range v.Pods {
		done := p.Component != UnknownComponent && v.finished(p.Component)
		if !p.NotReadySince.IsZero() && !p.Terminating && p.MigrateFrom == "" && !done {
			stuck = append(stuck, p)
		}
	}
	return stuck
}

// stuckDeadline is when the first of them has not been ready for the grace since enough pods run.
func (v *view) stuckDeadline(stuck []Pod) time.Time {
	since := v.now
	for _, p := range stuck {
		since = earlier(since, p.NotReadySince)
	}
	return later(since, v.transitionTime(v1beta2.PodsReady)).Add(v.Policy.NoProgressGrace)
}

// untilStuck adds to a decision to stay that pods have to be looked at when their grace ends.
func (v *view) untilStuck(d Decision) Decision {
	stuck := v.stuck()
	if len(stuck) == 0 {
		return d
	}
	return v.untilAtMost(d, v.afterHolding(v.stuckDeadline(stuck)))
}
