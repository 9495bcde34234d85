// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
)

// Event tells the author of an AppWrapper what happened to it.
type Event struct {
	// Type is Normal or Warning.
	Type string
	// Reason is the cause, in one word.
	Reason string
	// Action is what the controller did, or the condition that shows the event.
	Action string
	// Message is for humans.
	Message string
}

// The actions of events.
const (
	actionUnhealthy  = "Unhealthy"
	actionSuspending = "Suspending"
)

const reasonExternallySuspended = "ExternallySuspended"

func unhealthyEvent(reason, message string) *Event {
	return &Event{Type: corev1.EventTypeWarning, Reason: reason, Action: actionUnhealthy, Message: message}
}

func suspendingEvent(from v1beta2.AppWrapperPhase) *Event {
	return &Event{
		Type:    corev1.EventTypeNormal,
		Reason:  reasonExternallySuspended,
		Action:  actionSuspending,
		Message: "spec.suspend became true while the phase was " + string(from),
	}
}
