// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
)

// Activity is what a second sign says about the devices of an AppWrapper, such as a query about the power that
// they draw. The first sign, of the work itself, is the only one that asks for an action. The second can hold it
// back, and nothing else.
type Activity string

// What a second sign may say. There is nothing else.
const (
	// ActivityNotAsked: there is no second sign, or it was not asked.
	ActivityNotAsked Activity = ""
	// ActivityAwaited: there is no answer yet. Soon there is one, or it is unknown.
	ActivityAwaited Activity = "Awaited"
	// ActivityComputes: the devices of a pod compute.
	ActivityComputes Activity = "Computes"
	// ActivityRests: no devices do.
	ActivityRests Activity = "Rests"
	// ActivityUnknown: there is no answer, or it is not about these pods.
	ActivityUnknown Activity = "Unknown"
)

const (
	// AskAgain is how long devices that compute hold an action back. Then the second sign is asked again.
	AskAgain = 30 * time.Second
	// awaits is how soon to look whether an answer has come.
	awaits = time.Second
)

// heldBack: what the first sign asks for must not happen now.
func (v *view) heldBack() bool {
	return v.Activity == ActivityComputes || v.Activity == ActivityAwaited
}

// afterHolding is when to look again at what was due then: later, if it is held back.
func (v *view) afterHolding(due time.Time) time.Time {
	switch v.Activity {
	case ActivityComputes:
		return later(due, v.now.Add(AskAgain))
	case ActivityAwaited:
		return later(due, v.now.Add(awaits))
	}
	return due
}

// confirmed marks a decision that devices which compute would hold back, so whoever can has to ask first.
func (d Decision) confirmed() Decision {
	d.Confirm = true
	return d
}

// tellOfHolding announces, once, that a pod is silent and devices compute.
func (v *view) tellOfHolding(d Decision) Decision {
	began := !isTrueIn(v.Status, v1beta2.ComputesWithoutProgress) && isTrueIn(d.Status, v1beta2.ComputesWithoutProgress)
	if !began || d.Event != nil {
		return d
	}
	return d.announcing(holdingEvent(meta.FindStatusCondition(d.Status.Conditions, string(v1beta2.ComputesWithoutProgress)).Message))
}
