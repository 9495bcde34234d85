// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
)

// signLasts is for how long it counts that a pod was said to be idle. Whoever said so may be gone, and the
// pod at work again.
const signLasts = 10 * time.Minute

// idle: no pod has used its devices for long, says whoever watches them. The author is told when half of the
// grace is over. When all of it is, and the other half since then, Kueue is asked to take the quota back.
func idle(v *view) (Decision, bool) {
	since, rests := v.idleSince()
	well := v.podSets().ready() && v.isTrue(v1beta2.PodsReady) && !v.isTrue(v1beta2.Unhealthy)
	if !well || !rests || !v.saidLately() || v.now.Before(v.idleDeadline(since)) {
		return Decision{}, false
	}
	if v.heldBack() {
		v.noticeThatItComputes()
		return Decision{}, false
	}
	if v.isTrue(v1beta2.Idle) {
		return v.do(GiveBack, nil).confirmed(), true
	}
	message := fmt.Sprintf("no pod has used its devices for %s; after %s the quota goes back, and the AppWrapper is suspended", v.Policy.IdleGrace/2, v.Policy.IdleGrace)
	v.set(v1beta2.Idle, metav1.ConditionTrue, v1beta2.ReasonDevicesIdle, message)
	return v.stay().announcing(idleEvent(message)).confirmed(), true
}

// idleSince is since when every pod that holds devices does nothing with them, if that is so.
func (v *view) idleSince() (since time.Time, rests bool) {
	if v.Policy.IdleGrace == 0 {
		return time.Time{}, false
	}
	for _, p := range v.holders() {
		if p.IdleSince.IsZero() {
			return time.Time{}, false
		}
		since, rests = later(since, p.IdleSince), true
	}
	return since, rests
}

// holders are the pods that have devices, or will.
func (v *view) holders() []Pod {
	var holders []Pod
	for _, p := range v.Pods {
		has := false
		for _, n := range p.Devices {
			has = has || n > 0
		}
		if has && p.alive() && !p.Terminating {
			holders = append(holders, p)
		}
	}
	return holders
}

// saidLately: of each pod, it was said not long ago that it is idle. A clock that is far ahead tells nothing.
func (v *view) saidLately() bool {
	for _, p := range v.holders() {
		if age := v.now.Sub(p.IdleSeen); age >= signLasts || age < -maxSkew {
			return false
		}
	}
	return true
}

// idleDeadline is when the author is to be told or, if they have been, when the quota goes back.
func (v *view) idleDeadline(since time.Time) time.Time {
	half := v.Policy.IdleGrace / 2
	if !v.isTrue(v1beta2.Idle) {
		return since.Add(half)
	}
	return later(since.Add(v.Policy.IdleGrace), v.transitionTime(v1beta2.Idle).Add(half))
}

// noticeWork: a pod uses its devices again, or holds none any more.
func (v *view) noticeWork() {
	if _, rests := v.idleSince(); !rests {
		v.clear(v1beta2.Idle, v1beta2.ReasonDevicesUsed, "")
	}
}

// noticeThatItComputes: whoever says that the devices are idle is wrong.
func (v *view) noticeThatItComputes() {
	if v.Activity == ActivityComputes {
		v.clear(v1beta2.Idle, v1beta2.ReasonDevicesUsed, "")
	}
}

// untilIdle adds to a decision to stay that idle pods have to be looked at. If it was not said lately that they
// are idle, the next time that it is said causes a look.
func (v *view) untilIdle(d Decision) Decision {
	since, rests := v.idleSince()
	if !rests || !v.saidLately() {
		return d
	}
	return v.untilAtMost(d, v.afterHolding(v.idleDeadline(since)))
}
